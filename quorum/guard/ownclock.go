package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/vote"
)

// If a master's clock does not fit, that clock may have stepped, or ours may have stopped. A proxy
// whose own clock fails must not take the vote from masters that other proxies see working. So it
// puts a master into quarantine for its clock only if another master's clock, read later, fits:
// then ours is right. It does so for at most a minority at a time. Otherwise this proxy alone stops
// counting the master's votes, until the cause is known, every lease of that time has expired, or
// another proxy reports that the master's clock fitted all the time.

// othersPatience limits the wait for the other masters' clocks.
const othersPatience = 250 * time.Millisecond

// isMinority reports whether one more of n masters is still a minority, in addition to the masters
// that this proxy has put into quarantine for their clocks.
func isMinority(n, already int) bool { return already+1 <= n-vote.Majority(n) }

// clockOwner wakes the other guards, and decides whose clock stepped.
func (s *Set) clockOwner(ctx context.Context, i int, m clockStep) clockOwner {
	for j, g := range s.guards {
		if j != i {
			g.Wake()
		}
	}
	end := time.After(othersPatience)
	tick := time.Tick(time.Millisecond)
	for {
		owner, asked := ownerOf(m, s.othersDuring(i, m))
		if !asked {
			return owner
		}
		select {
		case <-tick:
		case <-end:
			return owner
		case <-ctx.Done():
			return ownerUnclear
		}
	}
}

// othersDuring returns the behaviour of the other connected masters' clocks during a step.
func (s *Set) othersDuring(i int, m clockStep) (seen []otherClock) {
	for j, g := range s.guards {
		if j != i && !g.IsDown() {
			seen = append(seen, g.clockDuring(m))
		}
	}
	return seen
}

func (g *Guard) clockDuring(m clockStep) otherClock {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.step.IsLike(m):
		return otherAlike
	case g.fittedNo > m.Number && !g.fitted.Sent.Before(m.At) && g.clock.WouldShow(m):
		return otherFits
	default:
		return otherUnknown
	}
}

// mayQuarantine reports whether this proxy may put one more master into quarantine for its clock,
// and stores the result in blamed.
func (s *Set) mayQuarantine(one *Guard) bool {
	s.blame.Lock()
	defer s.blame.Unlock()
	already := 0
	for _, g := range s.guards {
		g.mu.Lock()
		if g != one && g.blamed {
			already++
		}
		g.mu.Unlock()
	}
	may := isMinority(len(s.guards), already)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.blamed = may
	return may
}

// mayQuarantineForClock reports whether it has become certain that the suspected clock was the
// master's, and few enough other masters are blamed.
func (s *Set) mayQuarantineForClock(g *Guard, m clockStep) bool {
	owner, _ := ownerOf(m, s.othersDuring(g.index, m))
	return (owner == ownerMaster || m.At.IsZero()) && s.mayQuarantine(g)
}
