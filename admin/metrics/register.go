package metrics

import (
	"context"
	"time"

	"redlock-proxy/quorum"
)

// Register lists the methods of *quorum.Cluster that commands, scripts and transactions on lock
// keys use.
type Register interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error)
	Take(ctx context.Context, t quorum.TakeRequest) (quorum.GrantedLock, error)
	Release(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error)
	Update(ctx context.Context, key quorum.Key, expect *string,
		run func(quorum.Snapshot) (quorum.Decision, error)) (quorum.Outcome, error)
	UpdateAll(ctx context.Context, keys []quorum.Key, expect *string,
		run func([]quorum.Snapshot) ([]quorum.Decision, error)) (quorum.Outcome, error)
	Withdraw(keys []quorum.Key, grant quorum.GrantedLock)
	Guess(key quorum.Key) (token string, ok bool)
}

// CountingRegister implements Register, and counts the operations.
type CountingRegister struct {
	Register
	meters *meters
}

// CountRegister returns a Register that counts the operations on r.
func (m *Metrics) CountRegister(r Register) CountingRegister { return CountingRegister{r, &m.meters} }

// Read implements Register.
func (r CountingRegister) Read(ctx context.Context, keys []quorum.Key) (_ []quorum.Snapshot, err error) {
	defer r.meters.read.record(ctx, time.Now(), &err)
	return r.Register.Read(ctx, keys)
}

// Take implements Register.
func (r CountingRegister) Take(ctx context.Context, t quorum.TakeRequest) (quorum.GrantedLock, error) {
	began := time.Now()
	got, err := r.Register.Take(ctx, t)
	r.meters.acquire.record(ctx, began, &err)
	r.meters.recordGrant(t.TTL, t.Slots, err)
	return got, err
}

// Release implements Register.
func (r CountingRegister) Release(ctx context.Context, key quorum.Key, token string) (err error) {
	defer r.meters.release.record(ctx, time.Now(), &err)
	return r.Register.Release(ctx, key, token)
}

// Extend implements Register.
func (r CountingRegister) Extend(
	ctx context.Context, key quorum.Key, token string, ttl time.Duration,
) (_ quorum.GrantedLock, err error) {
	defer r.meters.extend.record(ctx, time.Now(), &err)
	return r.Register.Extend(ctx, key, token, ttl)
}

// Update implements Register.
func (r CountingRegister) Update(
	ctx context.Context, key quorum.Key, expect *string, run func(quorum.Snapshot) (quorum.Decision, error),
) (_ quorum.Outcome, err error) {
	defer r.meters.update.record(ctx, time.Now(), &err)
	return r.Register.Update(ctx, key, expect, run)
}

// UpdateAll implements Register.
func (r CountingRegister) UpdateAll(
	ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Snapshot) ([]quorum.Decision, error),
) (_ quorum.Outcome, err error) {
	defer r.meters.update.record(ctx, time.Now(), &err)
	return r.Register.UpdateAll(ctx, keys, expect, run)
}

// Withdraw implements Register.
func (r CountingRegister) Withdraw(keys []quorum.Key, grant quorum.GrantedLock) {
	r.meters.withdrawals.Add(float64(len(keys)))
	r.Register.Withdraw(keys, grant)
}
