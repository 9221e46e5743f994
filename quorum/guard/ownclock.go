package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/vote"
)

// If a master's clock does not fit, either that clock or this proxy's clock may be wrong. GUARD.md
// (Whose clock) states when the proxy blames the master, and when it only ignores its votes.

// otherClocksTimeout limits the wait for the other masters' clocks.
const otherClocksTimeout = 250 * time.Millisecond

// staysMinority reports whether one more master, together with the masters that this proxy has put
// into quarantine for their clocks, is still a minority of n.
func staysMinority(n, blamed int) bool { return blamed+1 <= n-vote.Majority(n) }

// clockOwner wakes the other guards, and decides whose clock stepped.
func (s *Set) clockOwner(ctx context.Context, i int, m clockStep) clockOwner {
	for j, g := range s.guards {
		if j != i {
			g.Wake()
		}
	}
	end := time.After(otherClocksTimeout)
	tick := time.Tick(time.Millisecond)
	for {
		owner, incomplete := findClockOwner(m, s.otherClocksInStep(i, m))
		if !incomplete {
			return owner
		}
		select {
		case <-tick:
		case <-end:
			return owner
		case <-ctx.Done():
			return ownerUnknown
		}
	}
}

// otherClocksInStep returns the behaviour of the other connected masters' clocks during a step.
func (s *Set) otherClocksInStep(i int, m clockStep) (clocks []otherClock) {
	for j, g := range s.guards {
		if j != i && !g.IsDown() {
			clocks = append(clocks, g.clockInStep(m))
		}
	}
	return clocks
}

// clockInStep returns the behaviour of the master's clock during another master's step.
func (g *Guard) clockInStep(m clockStep) otherClock {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.lastStep.MayShareCause(m):
		return otherSteppedToo
	case g.lastFitNumber > m.Number && !g.lastFittingReading.SentAt.Before(m.At) && g.clock.WouldReveal(m):
		return otherFits
	default:
		return otherUnknown
	}
}

// tryBlameClock reports whether this proxy may put one more master into quarantine for its clock,
// and stores the result in clockBlamed.
func (s *Set) tryBlameClock(suspect *Guard) bool {
	s.blameMu.Lock()
	defer s.blameMu.Unlock()
	blamed := 0
	for _, g := range s.guards {
		g.mu.Lock()
		if g != suspect && g.clockBlamed {
			blamed++
		}
		g.mu.Unlock()
	}
	may := staysMinority(len(s.guards), blamed)
	suspect.mu.Lock()
	defer suspect.mu.Unlock()
	suspect.clockBlamed = may
	return may
}

// mayQuarantineForClock reports whether it is now certain that the suspected step was the master's,
// or the suspicion is a missed canary. In addition, the masters blamed by this proxy must stay a
// minority.
func (s *Set) mayQuarantineForClock(g *Guard, m clockStep) bool {
	owner, _ := findClockOwner(m, s.otherClocksInStep(g.index, m))
	return (owner == ownerMaster || m.At.IsZero()) && s.tryBlameClock(g)
}
