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

// keySnapshot returns a key's value in its cell. The value is absent if all holders of the lock
// have expired.
func keySnapshot(b *keygroup.Group, cell Snapshot, key Key) (Snapshot, error) {
	l, _ := storedSnapshot(b, cell, key)
	if l.Foreign || !keygroup.IsHolders(l.Value) {
		if key.Holder != "" {
			return Snapshot{}, nil
		}
		return l, nil
	}
	holders, err := keygroup.OpenHolders(l)
	switch {
	case err != nil:
		return Snapshot{}, err
	case key.Holder != "":
		return holders.Holder(key.Holder), nil
	}
	return holders.Whole(), nil
}

// storedSnapshot returns a key's value in its cell as it is stored.
func storedSnapshot(b *keygroup.Group, cell Snapshot, key Key) (Snapshot, error) {
	if key.Tag == "" && !b.IsGroup() {
		return cell, nil
	}
	return b.Snapshot(key.Name), nil
}

// readStored returns the value of a key as it is stored.
func (set *masterSet) readStored(ctx context.Context, key Key) (Snapshot, error) {
	if err := set.checkAccess(key); err != nil {
		return Snapshot{}, err
	}
	cells, err := set.database(key.DB).Read(ctx, []string{key.cellName()})
	if err != nil {
		return Snapshot{}, set.translate(err)
	}
	b, err := keygroup.Open(key.cellName(), cells[0])
	if err != nil {
		return Snapshot{}, err
	}
	return storedSnapshot(b, cells[0], key)
}

// keyValues returns the keys' values in their cells.
func keyValues(keys []Key, cells []string, cellIndex []int, cellValues []Snapshot) ([]Snapshot, error) {
	snapshots, groups := make([]Snapshot, len(keys)), make([]*keygroup.Group, len(cells))
	for i, key := range keys {
		index := cellIndex[i]
		var err error
		if groups[index] == nil {
			if groups[index], err = keygroup.Open(cells[index], cellValues[index]); err != nil {
				return nil, err
			}
		}
		if snapshots[i], err = keySnapshot(groups[index], cellValues[index], key); err != nil {
			return nil, err
		}
	}
	return snapshots, nil
}
