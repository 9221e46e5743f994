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

// owing is what has versions removed that a Taking may have given its keys although it was answered with an error; nil where they stay.
func (g *generation) owing(t Taking) func(version string, mayArrive func() bool) {
	if t.Stays {
		return nil
	}
	return func(version string, mayArrive func() bool) {
		for _, key := range t.Keys {
			g.of.owe(key, version, t.TTL, mayArrive)
		}
	}
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

// Read is Cluster.Read.
func (g *generation) Read(ctx context.Context, keys []Key) ([]Look, error) {
	if err := g.mayTouch(keys...); err != nil {
		return nil, err
	}
	cells, of := cellsOf(keys)
	found, err := g.keyspace(keys[0].DB).Read(ctx, cells)
	if err != nil {
		return nil, g.explain(err)
	}
	return looksIn(keys, cells, of, found)
}

// Update is Cluster.Update.
func (g *generation) Update(ctx context.Context, key Key, expect *string, run func(Look) (Decision, error)) (Outcome, error) {
	return g.UpdateAll(ctx, []Key{key}, expect, only(run))
}

// Fence is Cluster.Fence.
func (g *generation) Fence(ctx context.Context, key Key) (int64, error) {
	if err := g.mayTouch(key); err != nil {
		return 0, err
	}
	if key.Tag != "" {
		return 0, nil
	}
	fence, err := g.keyspace(key.DB).Fence(ctx, key.Name)
	return fence, g.explain(err)
}

// Guess is Cluster.Guess.
func (g *generation) Guess(key Key) (token string, ok bool) {
	if key.Tag != "" {
		return "", false
	}
	token, ok = g.keyspace(key.DB).Guess(key.Name)
	return token, ok && !bag.Is(token)
}

// explain gives the errors of the register their names.
func (g *generation) explain(err error) error {
	if err == nil {
		return nil
	}
	var none *register.NoQuorum
	if !errors.As(err, &none) {
		return err
	}
	explained := newNoQuorum(len(g.masters))
	explained.Late, explained.Unclear = none.Late, none.Unclear
	for i, r := range none.Replies {
		switch {
		case r.State == register.Counted, r.State == register.Waiting: // it was not waited for, because of the others
			explained.Answered++
		case r.Err != nil:
			explained.add(&MasterError{Master: g.masters[i].Name(), Err: r.Err})
		}
	}
	if errors.Is(explained, ErrTooLong) && !explained.HasMajority() {
		return ErrTooLong // the masters are well
	}
	return explained
}
