package metrics

import (
	"context"
	"time"

	"redlock-proxy/quorum"
)

// Keys is the interface of a *quorum.Cluster that commands, scripts and transactions on lock keys
// use.
type Keys interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
	Take(ctx context.Context, t quorum.TakeRequest) (quorum.Granted, error)
	Release(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.Granted, error)
	Update(ctx context.Context, key quorum.Key, expect *string,
		run func(quorum.Look) (quorum.Decision, error)) (quorum.Outcome, error)
	UpdateAll(ctx context.Context, keys []quorum.Key, expect *string,
		run func([]quorum.Look) ([]quorum.Decision, error)) (quorum.Outcome, error)
	Withdraw(keys []quorum.Key, got quorum.Granted)
	Guess(key quorum.Key) (token string, ok bool)
}

// Register is a Keys that counts its operations.
type Register struct {
	Keys
	meters *meters
}

// Register returns a Keys that counts the operations on k.
func (m *Metrics) Register(k Keys) Register { return Register{k, &m.meters} }

// Read calls and counts Read of the Keys.
func (r Register) Read(ctx context.Context, keys []quorum.Key) (_ []quorum.Look, err error) {
	defer r.meters.read.end(ctx, time.Now(), &err)
	return r.Keys.Read(ctx, keys)
}

// Take calls and counts Take of the Keys.
func (r Register) Take(ctx context.Context, t quorum.TakeRequest) (quorum.Granted, error) {
	began := time.Now()
	got, err := r.Keys.Take(ctx, t)
	r.meters.acquire.end(ctx, began, &err)
	r.meters.granted(t.TTL, err)
	return got, err
}

// Release calls and counts Release of the Keys.
func (r Register) Release(ctx context.Context, key quorum.Key, token string) (err error) {
	defer r.meters.release.end(ctx, time.Now(), &err)
	return r.Keys.Release(ctx, key, token)
}

// Extend calls and counts Extend of the Keys.
func (r Register) Extend(
	ctx context.Context, key quorum.Key, token string, ttl time.Duration,
) (_ quorum.Granted, err error) {
	defer r.meters.extend.end(ctx, time.Now(), &err)
	return r.Keys.Extend(ctx, key, token, ttl)
}

// Update calls and counts Update of the Keys.
func (r Register) Update(
	ctx context.Context, key quorum.Key, expect *string, run func(quorum.Look) (quorum.Decision, error),
) (_ quorum.Outcome, err error) {
	defer r.meters.update.end(ctx, time.Now(), &err)
	return r.Keys.Update(ctx, key, expect, run)
}

// UpdateAll calls and counts UpdateAll of the Keys.
func (r Register) UpdateAll(
	ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error),
) (_ quorum.Outcome, err error) {
	defer r.meters.update.end(ctx, time.Now(), &err)
	return r.Keys.UpdateAll(ctx, keys, expect, run)
}

// Withdraw calls and counts Withdraw of the Keys.
func (r Register) Withdraw(keys []quorum.Key, got quorum.Granted) {
	r.meters.withdrawn.Add(float64(len(keys)))
	r.Keys.Withdraw(keys, got)
}
