package proxy

import (
	"context"

	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum/location"
)

// The methods in this file are the relay's part of locationRouter. The session's goroutine calls
// them, if not stated otherwise.

func (r *relay) isConfirmed() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.lockTraffic.confirmedDial == r.dial && !r.gone
}

func (r *relay) hasAnswered() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.lockTraffic.answered
}

func (r *relay) setConfirmed(dial uint16) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.lockTraffic.confirmedDial = dial
}

func (r *relay) isWatchMoved() bool { return r.lockTraffic.watchMoved.Load() }

// watchesLockKeys reports whether the client may watch lock keys at the upstream.
func (r *relay) watchesLockKeys() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.lockTraffic.watching
}

// clearWatch records that the client no longer watches lock keys at the upstream.
func (r *relay) clearWatch() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.lockTraffic.watchMoved.Store(false)
	r.lockTraffic.watching = false
}

// revalidateWatch is called if the locks seem to be at the upstream, still or again. If they are,
// the upstream itself knows whether a watched key has changed. It checks that with mu held, because
// connections are reported to be at rest under the same lock.
func (r *relay) revalidateWatch(places LockLocation) {
	if !r.isWatchMoved() {
		return
	}
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if at, known := places.CurrentLocation(); known && at.Place == location.Upstream {
		r.lockTraffic.watchMoved.Store(false)
	}
}

// beginLockCommand records that a command on lock keys is about to be sent. It reports false if the
// locks are not at the upstream now.
func (r *relay) beginLockCommand(places LockLocation, words [][]byte) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	at, known := places.CurrentLocation()
	if !known || at.Place != location.Upstream || !r.markSending(words) {
		return false
	}
	r.lockTraffic.restedDial = 0
	return true
}

// continueLockTx is beginLockCommand for a command of a transaction that may already contain
// commands on lock keys. Such a transaction continues to its end, even while the locks move.
func (r *relay) continueLockTx(words [][]byte) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.hasQueued() && r.lockTraffic.restedDial != r.dial && r.markSending(words)
}

// isInLockTx reports whether the client is within a transaction that may contain commands on lock
// keys.
func (r *relay) isInLockTx() bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	return r.lockTraffic.confirmedDial == r.dial && r.lockTraffic.restedDial != r.dial && !r.gone && r.hasQueued()
}

// hasQueued reports whether a transaction has begun in which a command was sent. It is called with
// mu held.
func (r *relay) hasQueued() bool { return r.tracker.State.Multi && r.tracker.State.Queued }

func (r *relay) markSending(words [][]byte) bool {
	c := &r.lockTraffic
	if c.confirmedDial != r.dial || r.gone {
		return false
	}
	c.sending = true
	c.mayBlock = c.mayBlock && !r.settled() || track.MayBlock(words[0])
	c.watching = c.watching || track.FollowedName(words[0]) == "watch"
	c.unanswered = c.unanswered || r.replyMode != track.Speaking
	return true
}

// beginOnMasters records that a command runs on the masters. It reports false if the locks are
// about to leave the masters.
func (r *relay) beginOnMasters(places LockLocation) bool {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.lockTraffic.onMasters = !places.IsLeavingMasters()
	return r.lockTraffic.onMasters
}

// endOnMasters records that the command is done.
func (r *relay) endOnMasters() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.lockTraffic.onMasters = false
	r.line.signal()
}

// lockCommandSent records that the command was sent: from now on its reply is expected.
func (r *relay) lockCommandSent() {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	r.lockTraffic.sending = false
	r.line.changed.Broadcast()
}

// blockedAddr returns the local address of the connection to the upstream, if a command on lock
// keys may be blocked on it; else it returns "".
func (r *relay) blockedAddr() string {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	if r.wire == nil || r.gone || !r.lockTraffic.mayBlock || !r.lockTraffic.sending && r.tracker.Settled() {
		return ""
	}
	return r.wire.LocalAddr()
}

// waitAtRest waits until no command on a lock key is under way on the connection to the upstream,
// or ctx ends. It returns the local address of the connection, and whether it is at rest. The
// address is empty if there is no connection. Any goroutine may call it.
func (r *relay) waitAtRest(ctx context.Context) (address string, atRest bool) {
	r.line.mu.Lock()
	defer r.line.mu.Unlock()
	err := r.line.wait(ctx, r.isAtRest)
	if r.wire == nil || r.gone {
		return "", false
	}
	if err != nil || r.lockTraffic.unanswered && r.lockTraffic.confirmedDial == r.dial {
		return r.wire.LocalAddr(), false
	}
	if r.lockTraffic.watching && r.lockTraffic.confirmedDial == r.dial && r.tracker.State.Watching {
		r.lockTraffic.watchMoved.Store(true)
	}
	r.lockTraffic.restedDial = r.dial
	return r.wire.LocalAddr(), true
}

// isAtRest reports whether no command on a lock key is under way. A connection that was reported to
// be at rest stays so, whatever its client does on it: it has carried no command on a lock key
// since. It is called with mu held.
func (r *relay) isAtRest() bool {
	c := &r.lockTraffic
	noneAtUpstream := r.wire == nil || r.gone || c.confirmedDial != r.dial || c.restedDial == r.dial ||
		!c.sending && r.tracker.Settled() && !r.hasQueued()
	return !c.onMasters && noneAtUpstream
}
