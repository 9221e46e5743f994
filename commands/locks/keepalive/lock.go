package keepalive

import (
	"context"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum"
)

// Lock is a kept lock of a client. Reserve returns it before the client takes the lock, so that no
// client takes a lock that the proxy cannot keep.
type Lock struct {
	holder *Holder
	key    quorum.Key
	name   string // the key as the client names it
	token  string

	// The Keeper's mu guards the following fields.
	schedule
	at    time.Time // time of the next renewal or check; only valid while the lock is queued
	index int       // position in the queue, or notQueued
	// dropped is set when the Keeper has removed the lock.
	dropped bool
	// onExtraRenewal is called after an extra renewal; nil if none is requested.
	onExtraRenewal func()
	// announced is set while a push about the latest renewal is waiting to be written.
	announced bool
}

// lockSize is the memory of a kept lock in addition to its key and token, in bytes.
const lockSize = 512

func (l *Lock) size() int { return lockSize + len(l.key.Name) + len(l.name) + len(l.token) }

// Keep starts to keep the lock, which the masters have granted. It removes the previous kept lock
// of the key, if there is one. If that lock has a different token, Keep tells its client. If the
// token is the same, the new client takes over the lock.
func (l *Lock) Keep(t Term) {
	k := l.holder.keeper
	k.mu.Lock()
	if t.OfHolder {
		l.key = l.key.OfHolder(l.token)
	}
	previous := k.locks[l.key]
	isOther := previous != nil && previous.token != l.token
	switch {
	case isOther:
		k.dropLost(previous, NotHeld)
	case previous != nil:
		k.drop(previous)
	}
	if l.holder.stopped {
		l.Cancel()
	} else {
		l.schedule = newSchedule(t)
		k.keptCount.Add(1)
		k.locks[l.key] = l
		l.holder.locks[l] = true
		k.schedule(l, l.dueTime())
	}
	k.mu.Unlock()
	if isOther {
		previous.holder.announceLoss(previous, NotHeld)
	}
}

// Cancel ends the reservation of a lock that was not granted. A nil Lock has no reservation.
func (l *Lock) Cancel() {
	if l != nil {
		l.holder.bytes.Add(-int64(l.size()))
	}
}

// renewOrDrop renews a lock that is due, or removes it if it is lost.
func (k *Keeper) renewOrDrop(ctx context.Context, l *Lock) {
	now := time.Now()
	hasLeft := l.holder.client.HasDisconnected()
	k.mu.Lock()
	extra := l.onExtraRenewal
	if l.onExtraRenewal = nil; extra != nil {
		defer extra()
	}
	if hasLeft {
		k.drop(l)
	}
	if l.dropped {
		k.mu.Unlock()
		return
	}
	if reason, isLost := l.lossAt(now); isLost {
		k.dropLost(l, reason)
		k.mu.Unlock()
		l.holder.announceLoss(l, reason)
		return
	}
	if l.isLast() { // an extra renewal: MAXHOLD permits no further renewal
		k.schedule(l, l.ValidUntil)
		k.mu.Unlock()
		return
	}
	ttl, deadline := l.leaseAt(now), l.deadlineAt(now)
	k.mu.Unlock()

	callCtx, cancel := context.WithDeadlineCause(ctx, deadline, errTooLate)
	var got quorum.GrantedLock
	err := contained.Run(func() (err error) {
		got, err = k.masters.Extend(callCtx, l.key, l.token, ttl)
		return err
	})
	cancel()
	if ctx.Err() == nil {
		k.recordResult(l, got, err, now, ttl, extra != nil)
	}
}

// recordResult records the result of a renewal that began at start.
func (k *Keeper) recordResult(l *Lock, got quorum.GrantedLock, err error, start time.Time, ttl time.Duration, extra bool) {
	now := time.Now()
	if err == nil {
		k.renewals.Add(1)
		k.observer.CountRenewal(l.key)
		if k.noteRenewal(l, start, ttl, now.Add(got.Validity), extra) && !extra {
			l.holder.announceRenewal(l)
		}
		return
	}
	if reason, isLost := k.noteFailure(l, err, now); isLost {
		l.holder.announceLoss(l, reason)
	}
}

// noteRenewal schedules the next renewal, and reports whether the lock is still kept.
func (k *Keeper) noteRenewal(l *Lock, start time.Time, ttl time.Duration, validUntil time.Time, extra bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.dropped {
		return false
	}
	l.recordRenewal(start, ttl, validUntil, extra)
	k.schedule(l, l.dueTime())
	return true
}

// noteFailure schedules a retry, or removes the lock if it is lost.
func (k *Keeper) noteFailure(l *Lock, err error, now time.Time) (reason Reason, isLost bool) {
	reason, isFinal := reasonOf(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case l.dropped:
		return reason, false
	case isFinal || !now.Before(l.ValidUntil):
		k.dropLost(l, reason)
		return reason, true
	}
	k.schedule(l, l.recordFailure(now, reason))
	return reason, false
}
