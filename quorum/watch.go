package quorum

import (
	"time"

	"redlock-proxy/quorum/availability"
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

// Look sees what the masters have to do with whether locks are available.
func (c *Cluster) Look() availability.Look {
	g, u := c.now(), c.underway.Load()
	at, known := c.Placed()
	return availability.Look{
		Masters: len(g.masters), Voting: voting(g.masters), Place: at.Place, Known: known,
		Changing: u != nil && time.Since(u.began) < changePatience || c.Departing(),
	}
}

// HasQuorum is Cluster.HasQuorum.
func (g *generation) HasQuorum() bool {
	return voting(g.masters) >= Majority(len(g.masters))
}

// awaitQuorum is closed when a majority of the masters votes again; nil: it does now.
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

// Absence says which masters do not vote now, and why.
func (c *Cluster) Absence() *NoQuorumError { return c.now().absence() }

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
