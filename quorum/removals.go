package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/register"
)

// owe has a version of a key removed (package removals), for as long as its lease of ttl may last. Without a version the masters are to agree on the
// end of what they hold. mayArrive is as of removals.Add.
func (c *Cluster) owe(key Key, version string, ttl time.Duration, mayArrive func() bool) {
	if ttl < 0 {
		ttl = c.now().guards.MaxTTL()
	}
	if key.Tag == "" && version != "" && !c.now().keyspace(key.DB).Disown(key.Name, version) {
		return
	}
	if !c.removals.Add(key.anywhere(), version, time.Now().Add(ttl+register.Limit), mayArrive) {
		c.log.Warn("a lock that may be held by nobody stays until its TTL ends: too many removals are pending", "key", key.Name)
	}
}

// owes reports whether a version of a key is owed its removal.
func (c *Cluster) owes(key Key, version string) bool { return c.removals.Owes(key.anywhere(), version) }

// RemovalsPending is how many versions of keys are owed their removal, after an error or because their client did not learn of them.
func (c *Cluster) RemovalsPending() int { return c.removals.Len() }

// pay is of removals.Options. Nothing is removed once this proxy holds back for a move, and what another set of masters was given meanwhile is not
// known.
func (c *Cluster) pay(ctx context.Context, key Key, version string) bool {
	if at, _ := c.Placed(); (at.Moves() || c.Departing()) && c.holding.Load() == int64(at.Era)+1 || !c.HasQuorum() {
		return false
	}
	before := c.now()
	_, err := on(ctx, c, func(g *generation) (struct{}, error) { return struct{}{}, g.pay(ctx, key, version) })
	return (err == nil || errors.Is(err, ErrForeign)) && c.now() == before
}

func (g *generation) pay(ctx context.Context, key Key, version string) error {
	if version == "" {
		return g.explain(g.keyspace(key.DB).Settle(ctx, key.cell()))
	}
	looks, err := g.Read(ctx, []Key{key})
	if err != nil || looks[0].Version != version { // a ballot would be in the way of another who holds it
		return err
	}
	_, err = g.Update(ctx, key, nil, func(l Look) (Decision, error) {
		if l.Present && l.Version == version {
			return Decision{Do: Remove}, nil
		}
		return Decision{}, nil
	})
	return err
}
