package quorum

import (
	"context"

	"redlock-proxy/quorum/bag"
)

// Read returns the current values of keys of one database.
//
// Errors: ErrContended, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Read(ctx context.Context, keys []Key) ([]Look, error) {
	return onWhich(ctx, c, func(g *generation) ([]Look, error) { return g.Read(ctx, keys) })
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

// lookAt is what a key holds in a cell.
func lookAt(b *bag.Bag, cell Look, key Key) Look {
	if key.Tag == "" && !b.Shared() {
		return cell
	}
	return b.Look(key.Name)
}

// looksIn are what keys hold, by the looks at all of their cells.
func looksIn(keys []Key, cells []string, of []int, found []Look) ([]Look, error) {
	looks, opened := make([]Look, len(keys)), make([]*bag.Bag, len(cells))
	for i, key := range keys {
		at := of[i]
		if opened[at] == nil {
			var err error
			if opened[at], err = bag.Open(cells[at], found[at]); err != nil {
				return nil, err
			}
		}
		looks[i] = lookAt(opened[at], found[at], key)
	}
	return looks, nil
}
