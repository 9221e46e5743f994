package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/bag"
	"redlock-proxy/quorum/register"
)

// Endless is the remaining time of a key without expiry.
const Endless time.Duration = -1

// The parts of a change of one key; see package register.
type (
	// Look is the current value of a key.
	Look = register.Look
	// Decision is what a change makes of it.
	Decision = register.Decision
	// Outcome is what came of an Update.
	Outcome = register.Outcome
	// Grant is a lease that a majority granted.
	Grant = register.Granted
	// Terms are those on which keys are to be taken.
	Terms = register.Terms
)

// What a Decision does.
const (
	Leave  = register.Leave
	Put    = register.Put
	Remove = register.Remove
)

// ErrNeedsLeft is returned by the run of an Update that needs a remaining time which the
// Look does not know.
var ErrNeedsLeft = register.ErrNeedsLeft

// Taking asks for keys of one database, all or none.
type Taking struct {
	Keys []Key
	Terms
}

// Take takes keys that nobody holds and returns with the majority.
//
// Errors: *OwnKeyError, as of all methods, ErrHeld, ErrTooShort, ErrContended, *NoQuorumError, or
// the cause of ctx; with a fence also ErrFences and ErrFenceShared. After an error nothing is held:
// what may have been taken is removed in the background, unless it Stays.
func (c *Cluster) Take(ctx context.Context, t Taking) (Grant, error) {
	return onWhich(ctx, c, func(g *generation) (Grant, error) { return g.Take(ctx, t) })
}

// Take is Cluster.Take.
func (g *generation) Take(ctx context.Context, t Taking) (Grant, error) {
	if err := g.mayTouch(t.Keys...); err != nil {
		return Grant{}, err
	}
	if err := g.record(ctx, t.TTL); err != nil {
		return Grant{}, err
	}
	if anyTagged(t.Keys) {
		return g.takeShared(ctx, t)
	}
	t.Owed, t.IsNobodys = g.owing(t), func(l Look) bool { return !bag.Is(l.Value) && g.of.owes(t.Keys[0], l.Version) }
	got, err := g.keyspace(t.Keys[0].DB).Lock(ctx, namesOf(t.Keys), t.Terms)
	if len(t.Keys) == 1 && g.hasBag(err) {
		return g.takeShared(ctx, t)
	}
	return got, g.explain(err)
}

// Release removes the key if it holds the token.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrContended,
// *NoQuorumError when it cannot be known, or the cause of ctx; what was begun goes on all the same.
func (c *Cluster) Release(ctx context.Context, key Key, token string) error {
	asked := false
	_, err := on(ctx, c, func(g *generation) (struct{}, error) {
		asked = true
		return struct{}{}, g.Release(ctx, key, token)
	})
	if !asked { // the masters are being changed
		if version, left := c.now().keyspace(key.DB).Forget(key.Name, token); version != "" {
			c.owe(key, version, left, nil)
		}
	}
	return err
}

// Release is Cluster.Release.
func (g *generation) Release(ctx context.Context, key Key, token string) error {
	if err := g.mayTouch(key); err != nil {
		return err
	}
	if key.Tag != "" {
		return g.releaseShared(ctx, key, token)
	}
	err := g.keyspace(key.DB).Unlock(ctx, key.Name, token, func(version string, left time.Duration) { g.of.owe(key, version, left, nil) })
	if g.hasBag(err) {
		return g.releaseShared(ctx, key, token)
	}
	return g.explain(err)
}

// Extend gives a key that holds the token a lease of ttl (whole milliseconds, or Endless) from now,
// unless the one that it has is longer.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrTooShort,
// ErrContended, *NoQuorumError when it cannot be known, or the cause of ctx.
func (c *Cluster) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (Grant, error) {
	return onWhich(ctx, c, func(g *generation) (Grant, error) { return g.Extend(ctx, key, token, ttl) }) // twice is as once
}

// Extend is Cluster.Extend.
func (g *generation) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (Grant, error) {
	if err := g.mayTouch(key); err != nil {
		return Grant{}, err
	}
	if err := g.record(ctx, ttl); err != nil {
		return Grant{}, err
	}
	if key.Tag != "" {
		return g.extendShared(ctx, key, token, ttl)
	}
	got, err := g.keyspace(key.DB).Extend(ctx, key.Name, token, ttl)
	switch {
	case g.hasBag(err):
		return g.extendShared(ctx, key, token, ttl)
	case errors.As(err, new(*register.NoQuorum)): // some masters may hold it for longer than others
		g.of.owe(key, "", ttl, nil)
	}
	return got, g.explain(err)
}

// Fence is not below the fence of any lock of the key that was granted in the last seven days; 0
// where there was none.
//
// Errors: *OwnKeyError, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Fence(ctx context.Context, key Key) (int64, error) {
	return on(ctx, c, func(g *generation) (int64, error) {
		if err := g.mayTouch(key); err != nil || key.Tag != "" {
			return 0, err
		}
		fence, err := g.keyspace(key.DB).Fence(ctx, key.Name)
		return fence, g.explain(err)
	})
}

// Guess is the token under which this proxy has taken the key, or else what it has just put there,
// if it knows of nothing newer.
func (c *Cluster) Guess(key Key) (token string, ok bool) {
	if key.Tag != "" {
		return "", false
	}
	token, ok = c.now().keyspace(key.DB).Guess(key.Name)
	return token, ok && !bag.Is(token)
}

// Update makes a change of one key that depends on its current value; run may be called
// several times, and Outcome.Decision is the one that holds. If expect is not
// nil, run changes nothing where the key holds another value.
//
// Errors: those of run, ErrForeign, ErrContended, *NoQuorumError, or the cause of ctx; after
// the last two the change is made once at any later moment, or never.
func (c *Cluster) Update(ctx context.Context, key Key, expect *string, run func(Look) (Decision, error)) (Outcome, error) {
	return on(ctx, c, func(g *generation) (Outcome, error) { return g.Update(ctx, key, expect, run) })
}
