package quorum

import (
	"context"
	"errors"
)

// removePending implements removals.Options.Remove. It removes nothing while this proxy pauses
// commands for a move, or while no majority votes. It returns false if the masters have been
// replaced meanwhile.
func (c *Cluster) removePending(ctx context.Context, key Key, version string) bool {
	if at, _ := c.CurrentLocation(); (at.Moves() || c.IsLeavingMasters()) && c.pausedEra.Load() == int64(at.Era)+1 ||
		!c.HasQuorum() {
		return false
	}
	before := c.masterSet()
	_, err := withSet(ctx, c, func(set *masterSet) (struct{}, error) {
		return struct{}{},
			set.removePending(ctx, key, version)
	})
	return (err == nil || errors.Is(err, ErrForeign)) && c.masterSet() == before
}

func (set *masterSet) removePending(ctx context.Context, key Key, version string) error {
	if version == "" {
		return set.translate(set.database(key.DB).AcceptCurrent(ctx, key.cellName()))
	}
	snapshots, err := set.Read(ctx, []Key{key})
	// If the version differs, a ballot would disturb a client that holds the key now.
	if err != nil || snapshots[0].Version != version {
		return err
	}
	if key.Holder != "" {
		return set.removeHolder(ctx, key, version)
	}
	_, err = set.Update(ctx, key, nil, func(l Snapshot) (Decision, error) {
		if l.Present && l.Version == version {
			return Decision{Action: Remove}, nil
		}
		return Decision{}, nil
	})
	return err
}
