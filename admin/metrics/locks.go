package metrics

import (
	"context"
	"time"

	"redlock-proxy/quorum"
)

// Locker lists the methods of *quorum.Locker that LOCK, UNLOCK, EXTEND, FENCE and blocking commands
// use.
type Locker interface {
	Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error)
	Unlock(ctx context.Context, key quorum.Key, token string) error
	Withdraw(keys []quorum.Key, grant quorum.GrantedLock)
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error)
	ExtendTogether(ctx context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock
	Fence(ctx context.Context, key quorum.Key) (int64, error)
	AwaitPop(ctx context.Context, a quorum.BlockedPop) error
	WaiterCount() int
}

// CountingLocker implements Locker, and counts the operations.
type CountingLocker struct {
	Locker
	meters *meters
}

// CountLocks returns a Locker that counts the operations on l.
func (m *Metrics) CountLocks(l Locker) CountingLocker { return CountingLocker{l, &m.meters} }

// Lock implements Locker.
func (l CountingLocker) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	began := time.Now()
	got, err := l.Locker.Lock(ctx, req)
	if req.Wait == 0 {
		l.meters.acquire.record(ctx, began, &err)
	} else {
		l.meters.recordWait(req.Keys, time.Since(began))
		l.meters.acquire.countResult(ctx, err)
	}
	l.meters.recordGrant(req.TTL, req.Slots, err)
	return got, err
}

// Unlock implements Locker.
func (l CountingLocker) Unlock(ctx context.Context, key quorum.Key, token string) (err error) {
	defer l.meters.release.record(ctx, time.Now(), &err)
	return l.Locker.Unlock(ctx, key, token)
}

// Withdraw implements Locker.
func (l CountingLocker) Withdraw(keys []quorum.Key, grant quorum.GrantedLock) {
	l.meters.withdrawals.Add(float64(len(keys)))
	l.Locker.Withdraw(keys, grant)
}

// Extend implements Locker.
func (l CountingLocker) Extend(
	ctx context.Context, key quorum.Key, token string, ttl time.Duration,
) (_ quorum.GrantedLock, err error) {
	defer l.meters.extend.record(ctx, time.Now(), &err)
	return l.Locker.Extend(ctx, key, token, ttl)
}

// ExtendTogether implements Locker. It counts only the locks that the round extended, because the
// caller then calls Extend for each of the other locks.
func (l CountingLocker) ExtendTogether(ctx context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	began, err := time.Now(), error(nil)
	leases := l.Locker.ExtendTogether(ctx, requests)
	for i := range leases {
		if !leases[i].LeaseStart.IsZero() {
			l.meters.extend.record(ctx, began, &err)
		}
	}
	return leases
}
