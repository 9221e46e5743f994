package guard

import (
	"context"
	"time"

	"redlock-proxy/quorum/vote"
)

// A master's clock that does not fit may have stepped, or ours may have stopped. One
// proxy whose own clock fails must not take the vote from masters that others see well.
// So a master is put into quarantine for its clock only where another master's clock,
// looked at later, fits: then ours is right. And never more than a minority at a time.
// Where that is not known, this proxy alone counts the master's votes no more, until it
// is known, every lease of that time is over, or another proxy is seen that found the
// master's clock to fit all the time.

// othersPatience bounds the wait for the other masters' clocks.
const othersPatience = 250 * time.Millisecond

// mayQuarantine reports whether one more master of n, in addition to those that this proxy has in
// quarantine for their clocks, is still a minority.
func mayQuarantine(n, already int) bool { return already+1 <= n-vote.Majority(n) }

// clockOwner has the other masters looked at, and decides whose clock moved.
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

// othersDuring is what the clocks of the other masters that are reached did when one stepped.
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

// mayQuarantine reports whether this proxy may put one more master into quarantine for its
// clock, and notes that it does.
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
	may := mayQuarantine(len(s.guards), already)
	one.mu.Lock()
	defer one.mu.Unlock()
	one.blamed = may
	return may
}

// canBlame reports whether it is known by now that the clock that a doubt is about was the
// master's, since others were looked at, and fewer are blamed.
func (s *Set) canBlame(g *Guard, m clockStep) bool {
	owner, _ := ownerOf(m, s.othersDuring(g.index, m))
	return (owner == ownerMaster || m.At.IsZero()) && s.mayQuarantine(g)
}
