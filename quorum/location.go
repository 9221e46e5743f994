package quorum

import (
	"fmt"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/location"
)

// Location is the location of the locks on lock keys, as the masters report it.
type Location = location.EraPlace

// WrongLocationError means that a command on a lock key changed nothing, because the locks are not,
// or no longer, at the expected location.
type WrongLocationError struct {
	// Current is the location of the locks.
	Current Location
}

// Error returns a sentence with a remedy.
func (e *WrongLocationError) Error() string {
	if e.Current.Moves() {
		return "the locks on lock keys are being moved by other proxies; try again"
	}
	return fmt.Sprintf("the locks on lock keys are at the %v, which this proxy does not have; use a proxy that has it",
		e.Current.Place)
}

// locationIn returns the location of the locks in an era.
func (c *Cluster) locationIn(era reconfig.Era) Location {
	return Location{Place: era.Place.WithDefault(c.opts.FromUpstream), Era: era.Number}
}

// CurrentLocation returns the location of the locks, as far as this proxy knows. known is false if
// too few masters reported it, or while the masters decide on a change. CurrentLocation does not
// wait.
func (c *Cluster) CurrentLocation() (current Location, known bool) {
	era, known := c.masterSet().guards.Era()
	return c.locationIn(era), known && c.currentChange.Load() == nil
}

// IsDecided reports whether the masters have decided on this location, and it is current. If it is
// current but not decided, no move has begun yet, and it follows from Options.FromUpstream. A change
// of the masters does not decide on a location.
func (c *Cluster) IsDecided(at Location) bool {
	era, known := c.masterSet().guards.Era()
	return known && era.Location() == at
}

// LocationChanged returns a channel that is closed when the result of CurrentLocation may have
// changed.
func (c *Cluster) LocationChanged() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locationChanged == nil {
		c.locationChanged = make(chan struct{})
	}
	return c.locationChanged
}

// notifyLocation closes the channel of LocationChanged.
func (c *Cluster) notifyLocation() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locationChanged != nil {
		close(c.locationChanged)
		c.locationChanged = nil
	}
}

// IsLeavingMasters reports whether the locks are about to leave the masters. Then no command on a
// lock key may begin on the masters.
func (c *Cluster) IsLeavingMasters() bool {
	return c.masterSet().guards.IsMoveAnnounced(location.MovingToUpstream)
}

// checkAccess returns nil if commands may access the keys on these masters, or else an
// *OwnKeyError, a *WrongLocationError, or a *NoQuorumError.
func (set *masterSet) checkAccess(keys ...Key) error {
	if err := checkOwnKeys(keys...); err != nil {
		return err
	}
	for _, key := range keys {
		if !key.Movable && key.Era == 0 {
			continue
		}
		era, known := set.guards.OwnEra()
		at := set.cluster.locationIn(era)
		switch {
		case !known:
			return set.missingVotes()
		case key.Movable && at.Place != location.Masters, key.Era != 0 && key.Era != at.Era:
			return &WrongLocationError{at}
		}
	}
	return nil
}

// LocksUpstream is the line in Options.Settings with which a proxy assumes that the locks are at
// the upstream. The line has no effect once the masters have decided on the location of the locks.
const LocksUpstream = guard.LocksUpstream
