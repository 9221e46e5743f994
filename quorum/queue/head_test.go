package queue

import (
	"testing"
	"time"

	"redlock-proxy/quorum/watch"
)

// script drives a head, and checks its next steps.
type script struct {
	*testing.T
	head *Head
	now  time.Time
}

func play(t *testing.T) *script {
	return &script{t, NewHead(func() float64 { return 1 }), time.Unix(1000, 0)}
}

func (s *script) after(d time.Duration) *script {
	s.now = s.now.Add(d)
	return s
}

// want checks the next step, and the time until it.
func (s *script) want(step Step, in time.Duration) *script {
	s.Helper()
	got, at := s.head.Next()
	if got != step || step != Rest && at.Sub(s.now) != in {
		s.Errorf("step %d in %v, want %d in %v", got, at.Sub(s.now), step, in)
	}
	return s
}

func (s *script) told(c Signal) *script     { s.head.OnSignal(c, time.Time{}, s.now); return s }
func (s *script) failed() *script           { s.head.Failed(s.now); return s }
func (s *script) looked() *script           { s.head.Looked(s.now); return s }
func (s *script) sees(v watch.View) *script { s.head.Sees(v, s.now); return s }
func (s *script) held(end time.Duration) *script {
	return s.sees(watch.View{Verdict: watch.Held, End: s.now.Add(end)})
}
func (s *script) verdict(v watch.Verdict) *script { return s.sees(watch.View{Verdict: v}) }
func (s *script) unclear(asking bool) *script     { return s.sees(watch.View{Asking: asking}) }
func (s *script) stirred(v watch.Verdict) *script {
	return s.sees(watch.View{Verdict: v, SomeChanged: true})
}

const ms = time.Millisecond

// TestHeadSleeps: a held lock is left alone until it expires. After a quiet time a change is tried
// at once.
func TestHeadSleeps(t *testing.T) {
	s := play(t).told(TryNow).want(Try, 0).failed().want(Look, 0).looked().want(Rest, 0)
	s.held(10*time.Second).want(Try, 10*time.Second+endSpread)
	s.after(5*time.Second).verdict(watch.Changed).want(Try, 0)
}

// TestHeadAtTheEnd: a head whose try at the expiry fails looks first.
func TestHeadAtTheEnd(t *testing.T) {
	s := play(t).told(TryNow).failed().looked().held(time.Second)
	s.after(time.Second+endSpread).want(Try, 0).failed().want(Look, 0).looked()
	s.verdict(watch.Changed).want(Look, 2*shortestLook) // other leases have also expired
}

// TestHeadBusyLock: if the lock changes hands all the time, the head looks, less and less often,
// and tries if the lock stays free.
func TestHeadBusyLock(t *testing.T) {
	s := play(t).told(TryNow).failed().looked().held(time.Second)
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

// TestHeadPolls: while too little is known, the head polls.
func TestHeadPolls(t *testing.T) {
	s := play(t).told(TryNow)
	for _, pause := range []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 32 * ms, 32 * ms} {
		s.failed().want(Look, 0).looked().unclear(false).want(Try, pause)
		s.after(pause)
	}
	s.failed().looked().unclear(true).want(Try, 32*ms)
	s.after(ms).held(time.Second).want(Try, time.Second+endSpread)
	s.after(500*ms).unclear(false).want(Try, 0).failed().looked().unclear(true).want(Try, lookTimeout)
}

// TestHeadKeepsTrying: a lock that looks free but is not granted is tried with pauses.
func TestHeadKeepsTrying(t *testing.T) {
	s := play(t).told(TryNow)
	total := time.Duration(0)
	for range 10 {
		s.failed().looked().verdict(watch.Free)
		_, at := s.head.Next()
		total += at.Sub(s.now)
		s.after(at.Sub(s.now))
	}
	if total < 150*ms {
		t.Errorf("ten tries in %v", total)
	}
}

// TestHeadPartialChange: after a change that too few masters report, the head gives the other
// masters time to report it, and looks.
func TestHeadPartialChange(t *testing.T) {
	for _, v := range []watch.Verdict{watch.Held, watch.Unclear} {
		s := play(t).told(TryNow).failed().looked().held(time.Second).after(100 * ms)
		s.stirred(v).want(Look, grace).after(2*ms).stirred(v).want(Look, grace-2*ms)
		s.verdict(watch.Changed).want(Try, 0)
	}
}

// TestHeadWithoutEnd: the head looks at a lock without expiry from time to time.
func TestHeadWithoutEnd(t *testing.T) {
	play(t).told(TryNow).failed().looked().verdict(watch.Held).want(LookAnew, longestSleep)
}

// TestHeadBehindGrant: if a client of this process holds the lock, the head looks, and tries only
// if the lock is released soon.
func TestHeadBehindGrant(t *testing.T) {
	s := play(t).told(TryLater).want(Look, longestPoll).after(ms).told(TryNow).want(Try, 0)
	s.told(TryLater).after(longestPoll).looked().want(Rest, 0).held(time.Second).want(Try, time.Second+endSpread)
	s.told(TryNow).want(Try, 0)
	play(t).told(TryLater).after(longestPoll).looked().unclear(false).want(Try, 0) // the lock cannot be read
}

// TestHeadFirstChange: a head that was never refused tries at the first change. After a refusal it
// looks at a lock that was handed on.
func TestHeadFirstChange(t *testing.T) {
	s := play(t).told(TryLater).after(longestPoll).want(Look,
		0).looked().held(time.Second).after(ms).verdict(watch.Changed).want(Try, 0)
	s.failed().looked().held(time.Second).after(ms).verdict(watch.Changed).want(Look, ms)
	s.held(time.Second).after(shortHold).verdict(watch.Changed).want(Try, 0)
}

// TestHeadIsStarved: after a while the head tries for a lock that is never left to this process.
func TestHeadIsStarved(t *testing.T) {
	s := play(t).told(TryNow).failed().looked()
	for begun := s.now; s.now.Sub(begun) < starvationTime; {
		s.held(time.Second).verdict(watch.Changed)
		step, at := s.head.Next()
		if step != Look {
			t.Fatalf("after %v: step %d", s.now.Sub(begun), step)
		}
		s.after(at.Sub(s.now)).looked()
	}
	s.verdict(watch.Changed).want(Try, longestLook)
	s.after(quietTime).held(time.Second).after(time.Second).verdict(watch.Changed).want(Try, 0) // after a quiet time
}

// TestHeadYields: a lock that is left to another process is tried when the time for that has
// passed, or looked at when that process has had it. Reports meanwhile change nothing.
func TestHeadYields(t *testing.T) {
	s := play(t)
	gap := s.now.Add(10 * ms)
	yields := func() *script { s.head.OnSignal(LeaveToPeer, gap, s.now); return s }
	yields().want(Try, 10*ms).verdict(watch.Free).want(Try, 10*ms).after(ms).verdict(watch.Changed).want(Try, 9*ms)
	yields().want(Try, 9*ms).head.PeerDone(s.now)
	s.want(Look, 0).looked().held(time.Second).want(Try, time.Second+endSpread)
	yields().told(TryNow).want(Try, 0).failed().want(Look, 0)
}
