package quorum

import (
	"fmt"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/place"
)

// Placed is where the locks on lock keys are, as the masters say.
type Placed = place.At

// ElsewhereError is returned where nothing was done about a lock key, because the locks are not, or
// no longer, where that was to be done.
type ElsewhereError struct {
	// Now is where they are.
	Now Placed
}

// Error is a sentence.
func (e *ElsewhereError) Error() string {
	if e.Now.Moves() {
		return "the locks on lock keys are being moved by other proxies: try again"
	}
	return fmt.Sprintf("the locks on lock keys are at the %v by now, of which this proxy has none: go to one that has", e.Now.Place)
}

// placedIn is where the locks are in an era of the masters.
func (c *Cluster) placedIn(era reconfig.Era) Placed {
	return Placed{Place: era.Place.OrBySetting(c.opts.FromUpstream), Era: era.Number}
}

// Placed is where the locks are, as far as this proxy has heard; known is false as long as too few
// masters reported it, and while something else is decided. It waits for nothing.
func (c *Cluster) Placed() (at Placed, known bool) {
	era, known := c.now().guards.Era()
	return c.placedIn(era), known && c.underway.Load() == nil
}

// Turned is closed when Placed may return something else.
func (c *Cluster) Turned() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turned == nil {
		c.turned = make(chan struct{})
	}
	return c.turned
}

// turn has those look again that wait for Turned.
func (c *Cluster) turn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turned != nil {
		close(c.turned)
		c.turned = nil
	}
}

// Departing reports whether the locks are about to leave the masters: then no command on a lock key
// is begun there.
func (c *Cluster) Departing() bool { return c.now().guards.IsBoundFor(place.ToUpstream) }

// mayTouch is why nothing may be done about the keys with these masters: an *OwnKeyError, or an
// *ElsewhereError. Else it is nil.
func (g *generation) mayTouch(keys ...Key) error {
	if err := ownKey(keys...); err != nil {
		return err
	}
	for _, key := range keys {
		if !key.Moves && key.Era == 0 {
			continue
		}
		era, known := g.guards.OwnEra()
		at := g.of.placedIn(era)
		switch {
		case !known:
			return g.absence()
		case key.Moves && at.Place != place.Masters, key.Era != 0 && key.Era != at.Era:
			return &ElsewhereError{at}
		}
	}
	return nil
}

// LocksUpstream is the line of Options.Settings of a proxy that takes the locks to be at the
// upstream until the masters decided where they are. Once they have, it makes no difference.
const LocksUpstream = guard.LocksUpstream
