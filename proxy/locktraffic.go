package proxy

import (
	"context"

	"redlock-proxy/proxy/track"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// The methods in this file are the relay's part of locationRouter. Only the session's goroutine
// calls them, unless a comment says otherwise.

func (r *relay) isConfirmed() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.lockTraffic.confirmedConn == r.connID && !r.disconnected
}

func (r *relay) hasAnswered() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.lockTraffic.answered
}

func (r *relay) setConfirmed(connID uint16) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.lockTraffic.confirmedConn = connID
}

func (r *relay) isWatchMoved() bool { return r.lockTraffic.watchMoved.Load() }

// watchesLockKeys reports whether the client may watch lock keys at the upstream.
func (r *relay) watchesLockKeys() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.lockTraffic.watching
}

// clearWatch records that the client no longer watches lock keys at the upstream.
func (r *relay) clearWatch() {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.lockTraffic.watchMoved.Store(false)
	r.lockTraffic.watching = false
}

// revalidateWatch clears watchMoved if the move was aborted: the locks never left the upstream,
// which knows whether a watched key has changed. It checks that with writer.mu held, because
// waitLockIdle sets watchMoved under the same lock.
func (r *relay) revalidateWatch(lockLocation LockLocation) {
	if !r.isWatchMoved() {
		return
	}
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	afterAbort := quorum.Location{Place: location.Upstream, Era: r.lockTraffic.movingEra + 1}
	if at, known := lockLocation.CurrentLocation(); known && at == afterAbort {
		r.lockTraffic.watchMoved.Store(false)
	}
}

// beginLockCommand records that a command on lock keys is about to be sent. It reports false if the
// locks are not at the upstream now.
func (r *relay) beginLockCommand(lockLocation LockLocation, words [][]byte) bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	at, known := lockLocation.CurrentLocation()
	if !known || at.Place != location.Upstream || !r.markSending(words) {
		return false
	}
	r.lockTraffic.reportedIdleConn = 0
	return true
}

// continueLockTx records, like beginLockCommand, a command of a transaction that may already
// contain commands on lock keys. Such a transaction continues to its end, even while the locks
// move.
func (r *relay) continueLockTx(words [][]byte) bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.hasQueued() && r.lockTraffic.reportedIdleConn != r.connID && r.markSending(words)
}

// isInLockTx reports whether the client is within a transaction that may contain commands on lock
// keys.
func (r *relay) isInLockTx() bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	return r.lockTraffic.confirmedConn == r.connID && r.lockTraffic.reportedIdleConn != r.connID && !r.disconnected && r.hasQueued()
}

// hasQueued reports whether a transaction has begun in which a command was sent. The caller must
// hold writer.mu.
func (r *relay) hasQueued() bool { return r.tracker.State.Multi && r.tracker.State.Queued }

// mayBeInTx reports whether a transaction in which a command was sent has begun, or may have begun.
// The caller must hold writer.mu.
func (r *relay) mayBeInTx() bool {
	begins := r.tracker.State.Multi || r.tracker.AwaitedReplies.Has(track.Multi)
	return r.hasQueued() || begins && !r.tracker.Settled()
}

func (r *relay) markSending(words [][]byte) bool {
	c := &r.lockTraffic
	if c.confirmedConn != r.connID || r.disconnected {
		return false
	}
	c.sending = true
	c.mayBlock = c.mayBlock && r.tracker.AwaitedReplies.HasMarked() || track.MayBlock(words[0])
	c.watching = c.watching || track.StateCommandName(words[0]) == "watch"
	c.replyless = c.replyless || r.replyMode != track.ReplyOn
	return true
}

// beginOnMasters records that a command runs on the masters. It reports false if the locks are
// about to leave the masters.
func (r *relay) beginOnMasters(lockLocation LockLocation) bool {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.lockTraffic.onMasters = !lockLocation.IsLeavingMasters()
	return r.lockTraffic.onMasters
}

// endOnMasters records that the command on the masters has ended.
func (r *relay) endOnMasters() {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.lockTraffic.onMasters = false
	r.writer.signal()
}

// markLockCommandSent records that the command on lock keys was sent, and marks its expected reply.
// Replies to later commands, such as a BLPOP on another key, do not keep the connection from being
// at rest.
func (r *relay) markLockCommandSent() {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	r.lockTraffic.sending = false
	r.lockTraffic.replyless = r.lockTraffic.replyless || r.tracker.State.Stream
	r.tracker.AwaitedReplies.Mark()
	r.writer.changed.Broadcast()
}

// blockedAddr returns the local address of the connection to the upstream, if a command on lock
// keys may be blocked on it; otherwise it returns "". Any goroutine may call blockedAddr.
func (r *relay) blockedAddr() string {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	if r.conn == nil || r.disconnected || !r.lockTraffic.mayBlock || !r.hasLockCommand() {
		return ""
	}
	return r.conn.LocalAddr()
}

// hasLockCommand reports whether a command on lock keys is being sent, or not yet answered. The
// caller must hold writer.mu.
func (r *relay) hasLockCommand() bool {
	return r.lockTraffic.sending || r.tracker.AwaitedReplies.HasMarked()
}

// waitLockIdle waits until no command on a lock key is under way on the connection to the upstream,
// or ctx ends. address is the local address of the connection, or empty if there is none. idle
// reports whether the connection is at rest. era is the era in which the locks move. Any goroutine
// may call waitLockIdle.
func (r *relay) waitLockIdle(ctx context.Context, era int) (address string, idle bool) {
	r.writer.mu.Lock()
	defer r.writer.mu.Unlock()
	err := r.writer.wait(ctx, r.isLockIdle)
	if r.conn == nil || r.disconnected {
		return "", false
	}
	if err != nil || r.lockTraffic.replyless && r.lockTraffic.confirmedConn == r.connID {
		return r.conn.LocalAddr(), false
	}
	if r.lockTraffic.watching && r.lockTraffic.confirmedConn == r.connID && r.tracker.State.Watching && !r.isWatchMoved() {
		r.lockTraffic.movingEra = era
		r.lockTraffic.watchMoved.Store(true)
	}
	r.lockTraffic.reportedIdleConn = r.connID
	return r.conn.LocalAddr(), true
}

// isLockIdle reports whether no command on a lock key is under way. A connection that was reported
// to be at rest stays at rest: it has carried no command on a lock key since. The caller must hold
// writer.mu.
func (r *relay) isLockIdle() bool {
	c := &r.lockTraffic
	noCommandAtUpstream := r.conn == nil || r.disconnected || c.confirmedConn != r.connID || c.reportedIdleConn == r.connID ||
		!r.hasLockCommand() && !r.mayBeInTx()
	return !c.onMasters && noCommandAtUpstream
}
