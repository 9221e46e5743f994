package quorum

import (
	"context"
	"errors"
)

// pay is of removals.Options. Nothing is removed once this proxy holds back for a move, and what
// another set of masters was given meanwhile is not known.
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
