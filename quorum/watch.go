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
