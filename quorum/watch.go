package quorum

import (
	"time"

	"redlock-proxy/quorum/wake"
)

// Mark notifies one who has read a key that it may have changed, by News; see package wake.
type (
	Mark = wake.Mark
	News = wake.News
)

// What a Mark reports.
const (
	Stirred   = wake.Stirred
	Changes   = wake.Changes
	Unwatched = wake.Unwatched
)

// Mark sets one for a key.
func (c *Cluster) Mark(key Key, tell func(News)) *Mark {
	return c.now().waker.Mark(key.DB, key.cell(), tell)
}

// watchPause is the wait between two looks at which masters vote. A majority counts as lost after
// two: a master of which the vote is only looked at again is back before that.
const watchPause = 100 * time.Millisecond

// quorumWatch reports when the majority was lost and when it is back, once each.
type quorumWatch struct {
	// lost is since when there is none; zero: there is one. reported is set once that was reported.
	lost     time.Time
	reported bool
}

// transition is what a quorumWatch found.
type transition int

const (
	noChange transition = iota
	quorumLost
	quorumBack
)

// see takes whether locks are available now. without is how long they were not.
func (a *quorumWatch) see(has bool, now time.Time) (what transition, without time.Duration) {
	switch {
	case has:
		what, without = noChange, now.Sub(a.lost)
		if a.reported {
			what = quorumBack
		}
		*a = quorumWatch{}
	case a.lost.IsZero():
		a.lost = now
	case !a.reported:
		a.reported, what = true, quorumLost
	}
	return what, without
}

// HasQuorum is Cluster.HasQuorum.
func (g *generation) HasQuorum() bool {
	return voting(g.masters) >= Majority(len(g.masters))
}

// awaitQuorum is closed when locks are available again; nil: they are now.
func (c *Cluster) awaitQuorum() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.HasQuorum():
		return nil
	case c.quorum == nil:
		c.quorum = make(chan struct{})
	}
	return c.quorum
}

// voted is called whenever a master was looked at that votes.
func (c *Cluster) voted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quorum != nil && c.HasQuorum() {
		close(c.quorum)
		c.quorum = nil
	}
}

// absence is the error of what cannot be known because of the masters that do not vote now.
func (c *Cluster) absence() error { return c.named(c.now().absence()) }

// absence is which masters do not vote now, and why.
func (g *generation) absence() *NoQuorumError {
	none := newNoQuorum(len(g.masters))
	for _, m := range g.Status() {
		switch {
		case m.Err != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Err})
		case m.Quarantine != nil:
			none.add(&MasterError{Master: m.Name, Err: m.Quarantine})
		default:
			none.Answered++
		}
	}
	return none
}
