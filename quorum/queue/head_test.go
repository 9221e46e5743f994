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

func (s *headScript) advance(d time.Duration) *headScript {
	s.now = s.now.Add(d)
	return s
}

// want checks the next step, and the time until it.
func (s *headScript) want(step Step, delay time.Duration) *headScript {
	s.Helper()
	got, at := s.head.NextStep()
	if got != step || step != StepIdle && at.Sub(s.now) != delay {
		s.Errorf("step %d in %v, want %d in %v", got, at.Sub(s.now), step, delay)
	}
	return s
}

func (s *headScript) signal(c Signal) *headScript      { s.head.OnSignal(c, time.Time{}, s.now); return s }
func (s *headScript) refuse() *headScript              { s.head.OnRefused(s.now); return s }
func (s *headScript) noteRead() *headScript            { s.head.OnRead(s.now); return s }
func (s *headScript) setView(v watch.View) *headScript { s.head.OnView(v, s.now); return s }
func (s *headScript) setHeld(expiresIn time.Duration) *headScript {
	return s.setView(watch.View{Verdict: watch.Held, Expiry: s.now.Add(expiresIn)})
}
func (s *headScript) setVerdict(v watch.Verdict) *headScript {
	return s.setView(watch.View{Verdict: v})
}
func (s *headScript) setUnclear(reading bool) *headScript {
	return s.setView(watch.View{Reading: reading})
}
func (s *headScript) setSomeChanged(v watch.Verdict) *headScript {
	return s.setView(watch.View{Verdict: v, SomeChanged: true})
}

const ms = time.Millisecond

// TestHeadSleep checks that the head neither tries nor reads until a held lock expires. After a
// quiet time, the head tries at once when the lock changes.
func TestHeadSleep(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).want(StepTry, 0).refuse().want(StepRead, 0).noteRead().want(StepIdle, 0)
	s.setHeld(10*time.Second).want(StepTry, 10*time.Second+maxExpiryDelay)
	s.advance(5*time.Second).setVerdict(watch.Changed).want(StepTry, 0)
}

// TestHeadAtExpiry checks that a head whose try at the expiry failed next reads the lock.
func TestHeadAtExpiry(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refuse().noteRead().setHeld(time.Second)
	s.advance(time.Second+maxExpiryDelay).want(StepTry, 0).refuse().want(StepRead, 0).noteRead()
	// the verdict is Changed because other leases have also expired
	s.setVerdict(watch.Changed).want(StepRead, 2*shortestBurstPause)
}

// TestHeadBusyLock checks a head whose lock changes hands all the time. The head reads it, less and
// less often, and tries if the lock stays free.
func TestHeadBusyLock(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refuse().noteRead().setHeld(time.Second)
	for _, pause := range []time.Duration{1 * ms, 2 * ms, 4 * ms, 4 * ms} {
		s.setVerdict(watch.Changed)
		_, at := s.head.NextStep()
		if got := at.Sub(s.now); got != pause {
			t.Errorf("it reads in %v, want %v", got, pause)
		}
		s.advance(pause).want(StepRead, 0).noteRead().setHeld(time.Second)
	}
	s.setVerdict(watch.Changed).advance(4*ms).noteRead().setVerdict(watch.Free).want(StepTry, 0)
	s.advance(ms).setVerdict(watch.Changed).want(StepRead, 3*ms) // the lock was handed on meanwhile
	s.advance(quietTime).setVerdict(watch.Changed).want(StepTry, 0)
}

// TestHeadPolls checks that the head polls while it knows too little.
func TestHeadPolls(t *testing.T) {
	s := newHeadScript(t).signal(TryNow)
	for _, pause := range []time.Duration{2 * ms, 4 * ms, 8 * ms, 16 * ms, 32 * ms, 32 * ms} {
		s.refuse().want(StepRead, 0).noteRead().setUnclear(false).want(StepTry, pause)
		s.advance(pause)
	}
	s.refuse().noteRead().setUnclear(true).want(StepTry, 32*ms)
	s.advance(ms).setHeld(time.Second).want(StepTry, time.Second+maxExpiryDelay)
	s.advance(500*ms).setUnclear(false).want(StepTry, 0).refuse().noteRead().setUnclear(true).want(StepTry, readTimeout)
}

// TestHeadKeepsTrying checks that the head tries with pauses for a lock that seems free but is not
// granted.
func TestHeadKeepsTrying(t *testing.T) {
	s := newHeadScript(t).signal(TryNow)
	total := time.Duration(0)
	for range 10 {
		s.refuse().noteRead().setVerdict(watch.Free)
		_, at := s.head.NextStep()
		total += at.Sub(s.now)
		s.advance(at.Sub(s.now))
	}
	if total < 150*ms {
		t.Errorf("ten tries in %v", total)
	}
}

// TestHeadPartialChange checks a change that too few masters report. The head gives the other
// masters time to report it, and reads the lock.
func TestHeadPartialChange(t *testing.T) {
	for _, v := range []watch.Verdict{watch.Held, watch.Unclear} {
		s := newHeadScript(t).signal(TryNow).refuse().noteRead().setHeld(time.Second).advance(100 * ms)
		s.setSomeChanged(v).want(StepRead, reportGrace).advance(2*ms).setSomeChanged(v).want(StepRead, reportGrace-2*ms)
		s.setVerdict(watch.Changed).want(StepTry, 0)
	}
}

// TestHeadWithoutExpiry checks that the head reads a lock without expiry from time to time.
func TestHeadWithoutExpiry(t *testing.T) {
	newHeadScript(t).signal(TryNow).refuse().noteRead().setVerdict(watch.Held).want(StepReadAll, longestSleep)
}

// TestHeadAfterGrant checks a head behind a grant to a client of this process. The head reads
// after a pause, and tries at once if that client releases the lock.
func TestHeadAfterGrant(t *testing.T) {
	s := newHeadScript(t).signal(TryLater).want(StepRead, longestPollPause).advance(ms).signal(TryNow).want(StepTry, 0)
	s.signal(TryLater).advance(longestPollPause).noteRead().want(StepIdle, 0).setHeld(time.Second).want(StepTry, time.Second+maxExpiryDelay)
	s.signal(TryNow).want(StepTry, 0)
	// The lock cannot be read.
	newHeadScript(t).signal(TryLater).advance(longestPollPause).noteRead().setUnclear(false).want(StepTry, 0)
}

// TestHeadFirstChange checks that a head that was never refused tries at the first change. After a
// refusal it reads a lock that was handed on.
func TestHeadFirstChange(t *testing.T) {
	s := newHeadScript(t).signal(TryLater).advance(longestPollPause).want(StepRead,
		0).noteRead().setHeld(time.Second).advance(ms).setVerdict(watch.Changed).want(StepTry, 0)
	s.refuse().noteRead().setHeld(time.Second).advance(ms).setVerdict(watch.Changed).want(StepRead, ms)
	s.setHeld(time.Second).advance(shortHold).setVerdict(watch.Changed).want(StepTry, 0)
}

// TestHeadStarvation checks that the head tries after a while for a lock that is never left to this
// process.
func TestHeadStarvation(t *testing.T) {
	s := newHeadScript(t).signal(TryNow).refuse().noteRead()
	for start := s.now; s.now.Sub(start) < starvationTime; {
		s.setHeld(time.Second).setVerdict(watch.Changed)
		step, at := s.head.NextStep()
		if step != StepRead {
			t.Fatalf("after %v: step %d", s.now.Sub(start), step)
		}
		s.advance(at.Sub(s.now)).noteRead()
	}
	s.setVerdict(watch.Changed).want(StepTry, longestBurstPause)
	// After a quiet time the head tries at once.
	s.advance(quietTime).setHeld(time.Second).advance(time.Second).setVerdict(watch.Changed).want(StepTry, 0)
}

// TestHeadLeaveToPeer checks a head that leaves a lock to another process for a time. The head
// tries when that time has passed, or reads the lock when that process has had the lock. Reports
// meanwhile change nothing.
func TestHeadLeaveToPeer(t *testing.T) {
	s := newHeadScript(t)
	leftUntil := s.now.Add(10 * ms)
	leave := func() *headScript { s.head.OnSignal(LeaveToPeer, leftUntil, s.now); return s }
	leave().want(StepTry, 10*ms).setVerdict(watch.Free).want(StepTry, 10*ms).advance(ms).setVerdict(watch.Changed).want(StepTry, 9*ms)
	leave().want(StepTry, 9*ms).head.OnPeerDone(s.now)
	s.want(StepRead, 0).noteRead().setHeld(time.Second).want(StepTry, time.Second+maxExpiryDelay)
	leave().signal(TryNow).want(StepTry, 0).refuse().want(StepRead, 0)
}
