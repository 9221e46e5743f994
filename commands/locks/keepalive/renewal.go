package keepalive

import (
	"context"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum"
)

const (
	// maxTogether and maxTogetherBytes limit the locks that one round extends, so that no other
	// client of a master has to wait long. overheadBytes is the size of an extension in addition to
	// its key and token.
	maxTogether, maxTogetherBytes = 128, 16 << 10
	overheadBytes                 = 96
)

// takeGroup removes and returns the first due lock, and the due locks behind it that the same round
// can extend. The caller holds mu.
func (k *Keeper) takeGroup() []*Lock {
	n, size := 0, 0
	for ; n < min(len(k.dueLocks), maxTogether); n++ {
		l := k.dueLocks[n]
		size += len(l.key.Name) + len(l.token) + overheadBytes
		if n > 0 && (size > maxTogetherBytes || l.key.DB != k.dueLocks[0].key.DB) {
			break
		}
	}
	group := k.dueLocks[:n:n]
	if k.dueLocks = k.dueLocks[n:]; len(k.dueLocks) == 0 {
		k.dueLocks = nil
	}
	return group
}

// renewal describes a running renewal.
type renewal struct {
	lock     *Lock
	start    time.Time
	ttl      time.Duration
	deadline time.Time
}

// begin returns the renewal of a due lock, or removes the lock if it is lost. ok is false if the
// lock needs no renewal. Then notice is a push for the client, unless its lock is nil. The caller
// holds mu.
func (k *Keeper) begin(l *Lock, now time.Time) (r renewal, notice push, ok bool) {
	if l.holder.client.HasDisconnected() {
		k.drop(l)
	}
	if l.dropped {
		l.endExtra()
		return r, notice, false
	}
	if reason, isLost := l.lossAt(now); isLost {
		k.dropLost(l, reason)
		l.endExtra()
		return r, push{lock: l, lost: true, reason: reason}, false
	}
	if l.isLast() { // an extra renewal: MAXHOLD permits no further renewal
		l.endExtra()
		k.schedule(l, l.ValidUntil)
		return r, notice, false
	}
	return renewal{l, now, l.leaseAt(now), l.deadlineAt(now)}, notice, true
}

// renewTogether renews locks in one round. The locks that the round does not extend are renewed one
// by one.
func (k *Keeper) renewTogether(ctx context.Context, locks []*Lock) {
	renewals, notices := k.beginEach(locks)
	requests := make([]quorum.ExtendRequest, len(renewals))
	var deadline time.Time
	for i, r := range renewals {
		requests[i] = quorum.ExtendRequest{Key: r.lock.key, Token: r.lock.token, TTL: r.ttl}
		if i == 0 || r.deadline.Before(deadline) {
			deadline = r.deadline
		}
	}
	leases := make([]quorum.GrantedLock, len(renewals))
	if len(renewals) > 0 {
		callCtx, cancel := context.WithDeadlineCause(ctx, deadline, errTooLate)
		_ = contained.Run(func() error {
			leases = k.masters.ExtendTogether(callCtx, requests)
			return nil
		})
		cancel()
	}
	notices = append(notices, k.noteLeases(renewals, leases)...)
	for _, notice := range notices {
		notice.lock.holder.announce(notice)
	}
}

// beginEach calls begin for each lock.
func (k *Keeper) beginEach(locks []*Lock) (renewals []renewal, notices []push) {
	now := time.Now()
	renewals = make([]renewal, 0, len(locks))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range locks {
		switch r, notice, ok := k.begin(l, now); {
		case ok:
			renewals = append(renewals, r)
		case notice.lock != nil:
			notices = append(notices, notice)
		}
	}
	return renewals, notices
}

// noteLeases records the leases of renewals that ran together. It hands the other renewals to
// workers that run them one by one, or loses the locks whose renewals took too long. It returns the
// pushes for the clients.
func (k *Keeper) noteLeases(renewals []renewal, leases []quorum.GrantedLock) (notices []push) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, r := range renewals {
		switch {
		case !leases[i].LeaseStart.IsZero():
			if k.noteLease(r, now.Add(leases[i].Validity)) {
				notices = append(notices, push{lock: r.lock})
			}
		case now.Before(r.deadline):
			k.singleLocks = append(k.singleLocks, r.lock)
		default:
			if notice := k.noteFailure(r.lock, errTooLate, now); notice.lock != nil {
				notices = append(notices, notice)
			}
		}
	}
	k.startWorkers()
	return notices
}

// renewAlone renews a lock by an EXTEND of its own.
func (k *Keeper) renewAlone(ctx context.Context, l *Lock) {
	k.mu.Lock()
	r, notice, ok := k.begin(l, time.Now())
	k.mu.Unlock()
	if ok {
		notice = k.extend(ctx, r)
	}
	if notice.lock != nil {
		l.holder.announce(notice)
	}
}

// extend runs a renewal and records its result. It returns the push for the client, if any.
func (k *Keeper) extend(ctx context.Context, r renewal) (notice push) {
	callCtx, cancel := context.WithDeadlineCause(ctx, r.deadline, errTooLate)
	defer cancel()
	var got quorum.GrantedLock
	err := contained.Run(func() (err error) {
		got, err = k.masters.Extend(callCtx, r.lock.key, r.lock.token, r.ttl)
		return err
	})
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		if k.noteLease(r, now.Add(got.Validity)) {
			return push{lock: r.lock}
		}
	case ctx.Err() != nil: // the proxy stops
		r.lock.endExtra()
	default:
		return k.noteFailure(r.lock, err, now)
	}
	return push{}
}

// noteLease schedules the next renewal, and reports whether the client gets a push about this one.
// The caller holds mu.
func (k *Keeper) noteLease(r renewal, validUntil time.Time) (tell bool) {
	k.renewals.Add(1)
	k.observer.CountRenewal(r.lock.key)
	l := r.lock
	isExtra := l.endExtra()
	if l.dropped {
		return false
	}
	l.recordRenewal(r.start, r.ttl, validUntil, isExtra)
	k.schedule(l, l.dueTime())
	return !isExtra
}

// noteFailure schedules a retry, or removes the lock if it is lost. It returns the push for the
// client, if any. The caller holds mu.
func (k *Keeper) noteFailure(l *Lock, err error, now time.Time) (notice push) {
	l.endExtra()
	reason, isFinal := reasonOf(err)
	switch {
	case l.dropped:
	case isFinal || !now.Before(l.ValidUntil):
		k.dropLost(l, reason)
		return push{lock: l, lost: true, reason: reason}
	default:
		k.schedule(l, l.recordFailure(now, reason))
	}
	return push{}
}

// endExtra ends an extra renewal, and reports whether one was running. The caller holds the
// Keeper's mu.
func (l *Lock) endExtra() bool {
	if l.extra == nil {
		return false
	}
	l.extra.Done()
	l.extra = nil
	return true
}
