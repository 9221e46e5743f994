package metrics

import (
	"context"
	"time"

	"redlock-proxy/quorum"
)

// Locker is the interface of a *quorum.Locker that LOCK, UNLOCK, EXTEND and FENCE use.
type Locker interface {
	Lock(ctx context.Context, req quorum.LockRequest) (quorum.Granted, error)
	Unlock(ctx context.Context, key quorum.Key, token string) error
	Withdraw(keys []quorum.Key, got quorum.Granted)
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.Granted, error)
	Fence(ctx context.Context, key quorum.Key) (int64, error)
	AwaitPop(ctx context.Context, a quorum.BlockedPop) error
	Waiting() int
}

// Locks is a Locker that counts its operations.
type Locks struct {
	Locker
	meters *meters
}

// Locks returns a Locker that counts the operations on l.
func (m *Metrics) Locks(l Locker) Locks { return Locks{l, &m.meters} }

// Lock calls and counts the Locker's Lock.
func (l Locks) Lock(ctx context.Context, req quorum.LockRequest) (quorum.Granted, error) {
	began := time.Now()
	got, err := l.Locker.Lock(ctx, req)
	if req.Wait == 0 {
		l.meters.acquire.end(ctx, began, &err)
	} else {
		l.meters.waited.Observe(time.Since(began).Seconds())
		l.meters.acquire.count(ctx, err)
	}
	l.meters.granted(req.TTL, err)
	return got, err
}

// Unlock calls and counts the Locker's Unlock.
func (l Locks) Unlock(ctx context.Context, key quorum.Key, token string) (err error) {
	defer l.meters.release.end(ctx, time.Now(), &err)
	return l.Locker.Unlock(ctx, key, token)
}

// Withdraw calls and counts the Locker's Withdraw.
func (l Locks) Withdraw(keys []quorum.Key, got quorum.Granted) {
	l.meters.withdrawn.Inc()
	l.Locker.Withdraw(keys, got)
}

// Extend calls and counts the Locker's Extend.
func (l Locks) Extend(
	ctx context.Context, key quorum.Key, token string, ttl time.Duration,
) (_ quorum.Granted, err error) {
	defer l.meters.extend.end(ctx, time.Now(), &err)
	return l.Locker.Extend(ctx, key, token, ttl)
}
