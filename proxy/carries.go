package proxy

import (
	"sync/atomic"

	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/place"
)

// carries is what a relay knows of commands on lock keys that it carries to the upstream. It is of the relay's mu.
type carries struct {
	// heard: the upstream has answered something on the connection.
	heard bool
	// vouched is the number of the connection over which such commands may go: a majority of the masters told after the upstream had answered on
	// it that the locks are there.
	vouched uint16
	// rested is the number of the connection that was told to be at rest in a move: of a transaction that goes on after that nothing is known.
	rested uint16
	// now: one is about to be sent, or was sent in part. runs: one is carried out on the masters.
	now, runs bool
	// blocks: one that may block was sent. unsure: one was sent that is not answered.
	blocks, unsure bool
	// watches: one was a WATCH.
	watches bool
	// stale: what it watched was moved since. It is written with mu held, and read by the session's goroutine without.
	stale atomic.Bool
}

// The relay's part. isVouched and the like are of the session's goroutine.

func (r *relay) isVouched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carries.vouched == r.dial && !r.gone
}

func (r *relay) hasHeard() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carries.heard
}

func (r *relay) vouch(dial uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carries.vouched = dial
}

func (r *relay) isStale() bool { return r.carries.stale.Load() }

// watchesLocks reports whether lock keys may be watched at the upstream.
func (r *relay) watchesLocks() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carries.watches
}

// unstale: nothing of lock keys is watched at the upstream any more.
func (r *relay) unstale() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carries.stale.Store(false)
	r.carries.watches = false
}

// stayed is called where the locks seem to be at the upstream after all, or again: it knows itself then what has changed of what is watched there. Whether
// they are is looked at under the lock under which connections are said to be at rest.
func (r *relay) stayed(places Places) {
	if !r.isStale() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, known := places.Placed(); known && at.Place == place.Upstream {
		r.carries.stale.Store(false)
	}
}

// carry notes that a command on lock keys is about to be sent, if the locks are at the upstream now.
func (r *relay) carry(places Places, words [][]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := places.Placed()
	if !known || at.Place != place.Upstream || !r.carryNow(words) {
		return false
	}
	r.carries.rested = 0
	return true
}

// carryOn is carry for a command of a transaction that may hold others on lock keys already: it goes to its end, also while the locks are moved.
func (r *relay) carryOn(words [][]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isBetween() && r.carries.rested != r.dial && r.carryNow(words)
}

// isMidway is isBetween for the connection over which such commands went.
func (r *relay) isMidway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carries.vouched == r.dial && r.carries.rested != r.dial && !r.gone && r.isBetween()
}

// isBetween reports whether a transaction has begun that may hold commands on lock keys. It is called with mu held.
func (r *relay) isBetween() bool { return r.tracker.State.Multi && r.tracker.State.Queued }

func (r *relay) carryNow(words [][]byte) bool {
	c := &r.carries
	if c.vouched != r.dial || r.gone {
		return false
	}
	c.now = true
	c.blocks = c.blocks && !r.quiet() || track.MayBlock(words[0])
	c.watches = c.watches || track.Name(words[0]) == "watch"
	c.unsure = c.unsure || r.silence != track.Speaking
	return true
}

// run notes that a command is carried out on the masters, unless the locks are about to leave.
func (r *relay) run(places Places) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carries.runs = !places.Departing()
	return r.carries.runs
}

// ran is called when it is done.
func (r *relay) ran() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carries.runs = false
	r.signal()
}

// carried is called when the answer to a command on lock keys is awaited.
func (r *relay) carried() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carries.now = false
	r.changed.Broadcast()
}
