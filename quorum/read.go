package quorum

import (
	"context"

	"redlock-proxy/quorum/keygroup"
)

// Read returns the current values of keys of one database.
//
// Errors: ErrContended, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Read(ctx context.Context, keys []Key) ([]Snapshot, error) {
	return withSetRepeated(ctx, c, func(set *masterSet) ([]Snapshot, error) { return set.Read(ctx, keys) })
}

// Read implements Cluster.Read.
func (set *masterSet) Read(ctx context.Context, keys []Key) ([]Snapshot, error) {
	if err := set.checkAccess(keys...); err != nil {
		return nil, err
	}
	cells, cellIndex := cellsOf(keys)
	cellValues, err := set.database(keys[0].DB).Read(ctx, cells)
	if err != nil {
		return nil, set.translate(err)
	}
	return keyValues(keys, cells, cellIndex, cellValues)
}

// keySnapshot returns a key's value in its cell.
func keySnapshot(b *keygroup.Group, cell Snapshot, key Key) Snapshot {
	if key.Tag == "" && !b.IsGroup() {
		return cell
	}
	return b.Snapshot(key.Name)
}

// keyValues returns the keys' values in their cells.
func keyValues(keys []Key, cells []string, cellIndex []int, cellValues []Snapshot) ([]Snapshot, error) {
	snapshots, groups := make([]Snapshot, len(keys)), make([]*keygroup.Group, len(cells))
	for i, key := range keys {
		index := cellIndex[i]
		if groups[index] == nil {
			var err error
			if groups[index], err = keygroup.Open(cells[index], cellValues[index]); err != nil {
				return nil, err
			}
		}
		snapshots[i] = keySnapshot(groups[index], cellValues[index], key)
	}
	return snapshots, nil
}
