package proxy

import (
	"context"

	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/place"
)

// The relay's part. isVouched and the like are of the session's goroutine.

func (r *relay) isVouched() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.carries.vouched == r.dial && !r.gone
}

func (r *relay) hasHeard() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.carries.heard
}

func (r *relay) vouch(dial uint16) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.carries.vouched = dial
}

func (r *relay) isStale() bool { return r.carries.stale.Load() }

// watchesLocks reports whether lock keys may be watched at the upstream.
func (r *relay) watchesLocks() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.carries.watches
}

// unstale: nothing of lock keys is watched at the upstream any more.
func (r *relay) unstale() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.carries.stale.Store(false)
	r.carries.watches = false
}

// stayed is called where the locks seem to be at the upstream after all, or again: it knows itself
// then what has changed of what is watched there. Whether they are is looked at under the lock
// under which connections are said to be at rest.
func (r *relay) stayed(places Places) {
	if !r.isStale() {
		return
	}
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if at, known := places.Placed(); known && at.Place == place.Upstream {
		r.carries.stale.Store(false)
	}
}

// carry notes that a command on lock keys is about to be sent, if the locks are at the upstream
// now.
func (r *relay) carry(places Places, words [][]byte) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	at, known := places.Placed()
	if !known || at.Place != place.Upstream || !r.carryNow(words) {
		return false
	}
	r.carries.rested = 0
	return true
}

// carryOn is carry for a command of a transaction that may hold others on lock keys already: it
// goes to its end, also while the locks are moved.
func (r *relay) carryOn(words [][]byte) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.isBetween() && r.carries.rested != r.dial && r.carryNow(words)
}

// isMidway is isBetween for the connection over which such commands went.
func (r *relay) isMidway() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.carries.vouched == r.dial && r.carries.rested != r.dial && !r.gone && r.isBetween()
}

// isBetween reports whether a transaction has begun that may hold commands on lock keys. It is
// called with mu held.
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
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.carries.runs = !places.Departing()
	return r.carries.runs
}

// ran is called when it is done.
func (r *relay) ran() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.carries.runs = false
	r.line.signal()
}

// carried is called when the answer to a command on lock keys is awaited.
func (r *relay) carried() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.carries.now = false
	r.line.changed.Broadcast()
}

// blocked is the proxy's end of the connection to the upstream, if a command on lock keys waits
// there for something.
func (r *relay) blocked() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || r.gone || !r.carries.blocks || !r.carries.now && r.tracker.Settled() {
		return ""
	}
	return r.wire.LocalAddr()
}

// rests waits until nothing of lock keys is under way on the connection to the upstream, as long as
// ctx, and tells this end of it, and whether that is so. It is empty where there is none.
func (r *relay) rests(ctx context.Context) (address string, rests bool) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	err := r.line.wait(ctx, r.isAtRest)
	if r.wire == nil || r.gone {
		return "", false
	}
	if err != nil || r.carries.unsure && r.carries.vouched == r.dial {
		return r.wire.LocalAddr(), false
	}
	if r.carries.watches && r.carries.vouched == r.dial && r.tracker.State.Watching {
		r.carries.stale.Store(true)
	}
	r.carries.rested = r.dial
	return r.wire.LocalAddr(), true
}

// isAtRest reports whether nothing of lock keys is under way. A connection that was said to be at
// rest stays so, whatever else its client does there, as nothing of lock keys was carried over it
// since. It is called with mu held.
func (r *relay) isAtRest() bool {
	c := &r.carries
	return !c.runs && (r.wire == nil || r.gone || c.vouched != r.dial || c.rested == r.dial || !c.now && r.tracker.Settled() && !r.isBetween())
}
