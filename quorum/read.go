package quorum

import (
	"context"

	"redlock-proxy/quorum/keygroup"
)

// Read returns the current values of keys of one database.
//
// Errors: ErrContended, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Read(ctx context.Context, keys []Key) ([]Look, error) {
	return withSetRepeated(ctx, c, func(set *masterSet) ([]Look, error) { return set.Read(ctx, keys) })
}

// Read implements Cluster.Read.
func (set *masterSet) Read(ctx context.Context, keys []Key) ([]Look, error) {
	if err := set.mayTouch(keys...); err != nil {
		return nil, err
	}
	cells, of := cellsOf(keys)
	found, err := set.database(keys[0].DB).Read(ctx, cells)
	if err != nil {
		return nil, set.translate(err)
	}
	return looksIn(keys, cells, of, found)
}

// lookAt returns a key's value in its cell.
func lookAt(b *keygroup.Group, cell Look, key Key) Look {
	if key.Tag == "" && !b.Shared() {
		return cell
	}
	return b.Look(key.Name)
}

// looksIn returns the keys' values in their cells.
func looksIn(keys []Key, cells []string, of []int, found []Look) ([]Look, error) {
	looks, opened := make([]Look, len(keys)), make([]*keygroup.Group, len(cells))
	for i, key := range keys {
		at := of[i]
		if opened[at] == nil {
			var err error
			if opened[at], err = keygroup.Open(cells[at], found[at]); err != nil {
				return nil, err
			}
		}
		looks[i] = lookAt(opened[at], found[at], key)
	}
	return looks, nil
}
