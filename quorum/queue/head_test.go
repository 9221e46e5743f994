package queue

import (
	"testing"
	"time"

	"redlock-proxy/quorum/watch"
)

// headScript drives a head, and checks its next steps.
type headScript struct {
	*testing.T
	head *Head
	now  time.Time
}

func newHeadScript(t *testing.T) *headScript {
	return &headScript{t, NewHead(func() float64 { return 1 }), time.Unix(1000, 0)}
}

func (s *headScript) after(d time.Duration) *headScript {
	s.now = s.now.Add(d)
	return s
}

// want checks the next step, and the time until it.
func (s *headScript) want(step Step, in time.Duration) *headScript {
	s.Helper()
	got, at := s.head.Next()
	if got != step || step != Idle && at.Sub(s.now) != in {
		s.Errorf("step %d in %v, want %d in %v", got, at.Sub(s.now), step, in)
	}
	return s
}

func (s *headScript) signal(c Signal) *headScript   { s.head.OnSignal(c, time.Time{}, s.now); return s }
func (s *headScript) refused() *headScript          { s.head.OnRefused(s.now); return s }
func (s *headScript) looked() *headScript           { s.head.OnLook(s.now); return s }
func (s *headScript) sees(v watch.View) *headScript { s.head.OnView(v, s.now); return s }
func (s *headScript) held(end time.Duration) *headScript {
	return s.sees(watch.View{Verdict: watch.Held, Expiry: s.now.Add(end)})
}
func (s *headScript) verdict(v watch.Verdict) *headScript { return s.sees(watch.View{Verdict: v}) }
func (s *headScript) unclear(asking bool) *headScript     { return s.sees(watch.View{Looking: asking}) }
func (s *headScript) someChanged(v watch.Verdict) *headScript {
	return s.sees(watch.View{Verdict: v, SomeChanged: true})
}

const ms = time.Millisecond

// TestHeadSleeps checks that the head neither tries nor looks until a held lock expires. After a
// quiet time, the head tries at once when the lock changes.
func TestHeadSleeps(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).want(Try, 0).refused().want(Look, 0).looked().want(Idle, 0)
	s.held(10*time.Second).want(Try, 10*time.Second+expirySpread)
	s.after(5*time.Second).verdict(watch.Changed).want(Try, 0)
}

// TestHeadAtExpiry checks that a head whose try at the expiry fails looks before it tries again.
func TestHeadAtExpiry(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refused().looked().held(time.Second)
	s.after(time.Second+expirySpread).want(Try, 0).refused().want(Look, 0).looked()
	// the verdict is Changed because other leases have also expired
	s.verdict(watch.Changed).want(Look, 2*shortestBurstPause)
}

// TestHeadBusyLock checks a head whose lock changes hands all the time. The head looks, less and
// less often, and tries if the lock stays free.
func TestHeadBusyLock(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refused().looked().held(time.Second)
	for _, pause := range []time.Duration{1 * ms, 2 * ms, 4 * ms, 4 * ms} {
		s.verdict(watch.Changed)
		_, at := s.head.Next()
		if got := at.Sub(s.now); got != pause {
			t.Errorf("it looks in %v, want %v", got, pause)
		}
		s.after(pause).want(Look, 0).looked().held(time.Second)
	}
	s.verdict(watch.Changed).after(4*ms).looked().verdict(watch.Free).want(Try, 0)
	s.after(ms).verdict(watch.Changed).want(Look, 3*ms) // the lock was handed on meanwhile
	s.after(quietTime).verdict(watch.Changed).want(Try, 0)
}

// TestHeadPolls checks that the head polls while it knows too little.
func TestHeadPolls(t *testing.T) {
	s := newHeadScript(t).signal(TryNow)
	for _, pause := range []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 32 * ms, 32 * ms} {
		s.refused().want(Look, 0).looked().unclear(false).want(Try, pause)
		s.after(pause)
	}
	s.refused().looked().unclear(true).want(Try, 32*ms)
	s.after(ms).held(time.Second).want(Try, time.Second+expirySpread)
	s.after(500*ms).unclear(false).want(Try, 0).refused().looked().unclear(true).want(Try, lookTimeout)
}

// TestHeadKeepsTrying checks that the head tries with pauses for a lock that looks free but is not
// granted.
func TestHeadKeepsTrying(t *testing.T) {
	s := newHeadScript(t).signal(TryNow)
	total := time.Duration(0)
	for range 10 {
		s.refused().looked().verdict(watch.Free)
		_, at := s.head.Next()
		total += at.Sub(s.now)
		s.after(at.Sub(s.now))
	}
	if total < 150*ms {
		t.Errorf("ten tries in %v", total)
	}
}

// TestHeadPartialChange checks a change that too few masters report. The head gives the other
// masters time to report it, and looks.
func TestHeadPartialChange(t *testing.T) {
	for _, v := range []watch.Verdict{watch.Held, watch.Unclear} {
		s := newHeadScript(t).signal(TryNow).refused().looked().held(time.Second).after(100 * ms)
		s.someChanged(v).want(Look, reportGrace).after(2*ms).someChanged(v).want(Look, reportGrace-2*ms)
		s.verdict(watch.Changed).want(Try, 0)
	}
}

// TestHeadWithoutExpiry checks that the head looks at a lock without expiry from time to time.
func TestHeadWithoutExpiry(t *testing.T) {
	newHeadScript(t).signal(TryNow).refused().looked().verdict(watch.Held).want(LookAll, longestSleep)
}

// TestHeadBehindGrant checks a head behind a grant to a client of this process. The head looks
// after a pause, and tries at once if that client releases the lock.
func TestHeadBehindGrant(t *testing.T) {
	s := newHeadScript(t).signal(TryLater).want(Look, longestPollPause).after(ms).signal(TryNow).want(Try, 0)
	s.signal(TryLater).after(longestPollPause).looked().want(Idle, 0).held(time.Second).want(Try, time.Second+expirySpread)
	s.signal(TryNow).want(Try, 0)
	// The lock cannot be read.
	newHeadScript(t).signal(TryLater).after(longestPollPause).looked().unclear(false).want(Try, 0)
}

// TestHeadFirstChange checks that a head that was never refused tries at the first change. After a
// refusal it looks at a lock that was handed on.
func TestHeadFirstChange(t *testing.T) {
	s := newHeadScript(t).signal(TryLater).after(longestPollPause).want(Look,
		0).looked().held(time.Second).after(ms).verdict(watch.Changed).want(Try, 0)
	s.refused().looked().held(time.Second).after(ms).verdict(watch.Changed).want(Look, ms)
	s.held(time.Second).after(shortHold).verdict(watch.Changed).want(Try, 0)
}

// TestHeadIsStarved checks that the head tries after a while for a lock that is never left to this
// process.
func TestHeadIsStarved(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refused().looked()
	for start := s.now; s.now.Sub(start) < starvationTime; {
		s.held(time.Second).verdict(watch.Changed)
		step, at := s.head.Next()
		if step != Look {
			t.Fatalf("after %v: step %d", s.now.Sub(start), step)
		}
		s.after(at.Sub(s.now)).looked()
	}
	s.verdict(watch.Changed).want(Try, longestBurstPause)
	// After a quiet time the head tries at once.
	s.after(quietTime).held(time.Second).after(time.Second).verdict(watch.Changed).want(Try, 0)
}

// TestHeadLeavesToPeer checks a head that leaves a lock to another process for a time. The head
// tries when that time has passed, or looks when that process has had the lock. Reports meanwhile
// change nothing.
func TestHeadLeavesToPeer(t *testing.T) {
	s := newHeadScript(t)
	leftUntil := s.now.Add(10 * ms)
	leave := func() *headScript { s.head.OnSignal(LeaveToPeer, leftUntil, s.now); return s }
	leave().want(Try, 10*ms).verdict(watch.Free).want(Try, 10*ms).after(ms).verdict(watch.Changed).want(Try, 9*ms)
	leave().want(Try, 9*ms).head.OnPeerDone(s.now)
	s.want(Look, 0).looked().held(time.Second).want(Try, time.Second+expirySpread)
	leave().signal(TryNow).want(Try, 0).refused().want(Look, 0)
}
