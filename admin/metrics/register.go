package metrics

import (
	"context"
	"time"

	"redlock-proxy/quorum"
)

// Keys are what commands, scripts and transactions on lock keys work with: a *quorum.Cluster.
type Keys interface {
	Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error)
	Take(ctx context.Context, t quorum.Taking) (quorum.Grant, error)
	Release(ctx context.Context, key quorum.Key, token string) error
	Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.Grant, error)
	Update(ctx context.Context, key quorum.Key, expect *string, run func(quorum.Look) (quorum.Decision, error)) (quorum.Outcome, error)
	UpdateAll(ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error)) (quorum.Outcome, error)
	Withdraw(keys []quorum.Key, tokens []string, got quorum.Grant)
	Guess(key quorum.Key) (token string, ok bool)
}

// Register are Keys whose operations are counted.
type Register struct {
	Keys
	meters *meters
}

// Register counts what is done with keys.
func (m *Metrics) Register(k Keys) Register { return Register{k, &m.meters} }

// Read is that of the Keys.
func (r Register) Read(ctx context.Context, keys []quorum.Key) ([]quorum.Look, error) {
	began := time.Now()
	looks, err := r.Keys.Read(ctx, keys)
	r.meters.read.end(ctx, began, err)
	return looks, err
}

// Take is that of the Keys.
func (r Register) Take(ctx context.Context, t quorum.Taking) (quorum.Grant, error) {
	began := time.Now()
	got, err := r.Keys.Take(ctx, t)
	r.meters.acquire.end(ctx, began, err)
	r.meters.granted(t.TTL, err)
	return got, err
}

// Release is that of the Keys.
func (r Register) Release(ctx context.Context, key quorum.Key, token string) error {
	began := time.Now()
	err := r.Keys.Release(ctx, key, token)
	r.meters.release.end(ctx, began, err)
	return err
}

// Extend is that of the Keys.
func (r Register) Extend(ctx context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.Grant, error) {
	began := time.Now()
	got, err := r.Keys.Extend(ctx, key, token, ttl)
	r.meters.extend.end(ctx, began, err)
	return got, err
}

// Update is that of the Keys.
func (r Register) Update(ctx context.Context, key quorum.Key, expect *string, run func(quorum.Look) (quorum.Decision, error)) (quorum.Outcome, error) {
	began := time.Now()
	out, err := r.Keys.Update(ctx, key, expect, run)
	r.meters.update.end(ctx, began, err)
	return out, err
}

// UpdateAll is that of the Keys.
func (r Register) UpdateAll(ctx context.Context, keys []quorum.Key, expect *string, run func([]quorum.Look) ([]quorum.Decision, error)) (quorum.Outcome, error) {
	began := time.Now()
	out, err := r.Keys.UpdateAll(ctx, keys, expect, run)
	r.meters.update.end(ctx, began, err)
	return out, err
}

// Withdraw is that of the Keys.
func (r Register) Withdraw(keys []quorum.Key, tokens []string, got quorum.Grant) {
	r.meters.withdrawn.Add(float64(len(keys)))
	r.Keys.Withdraw(keys, tokens, got)
}
