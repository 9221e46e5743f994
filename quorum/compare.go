package quorum

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
)

// A master that was unreachable has missed changes, and a proxy that crashed may have left changes
// unfinished. As soon as all masters vote, compareMissed compares their data. Package register
// repairs the differences.

const (
	// comparePause is the wait between two checks whether a comparison is needed.
	comparePause = 250 * time.Millisecond
	// compareBatch is the number of keys that are read at a time. Their values may be large.
	compareBatch = 50
	// maxPendingRepairs limits the number of keys under repair while further keys are compared.
	maxPendingRepairs = 4096
)

// anyDatabase stands for all databases.
const anyDatabase = -1

// compareMissed compares the databases in which masters may have missed changes, whenever all
// masters vote, until ctx ends.
func (set *masterSet) compareMissed(ctx context.Context) {
	set.databasesToCompare.add(anyDatabase)
	var peers []string
	for pacing.Sleep(ctx, comparePause) == nil {
		currentPeers := set.guards.PeerIDs()
		if slices.ContainsFunc(peers, func(id string) bool { return !slices.Contains(currentPeers, id) }) {
			set.databasesToCompare.add(anyDatabase) // no proxy finishes the changes of a vanished peer
		}
		peers = currentPeers
		if set.allVote() {
			set.compareAll(ctx)
		}
	}
}

// compareAll compares the databases in which a master may lack changes.
func (set *masterSet) compareAll(ctx context.Context) {
	databases := slices.Collect(maps.Keys(set.databasesToCompare.takeAll()))
	if slices.Contains(databases, anyDatabase) {
		var err error
		if databases, err = set.Databases(ctx); err != nil {
			set.databasesToCompare.add(anyDatabase)
			return
		}
	}
	for _, db := range databases {
		if err := set.compare(ctx, db); err != nil {
			set.databasesToCompare.add(db)
		}
	}
}

// compare compares the keys of a database. It pauses half of the time, so that it delays other
// commands little.
func (set *masterSet) compare(ctx context.Context, db int) error {
	d := set.database(db)
	for i, m := range set.masters {
		_, scanErr, err := scanNames(ctx, m, db, func(names []string) (more bool, err error) {
			for batch := range slices.Chunk(names, compareBatch) {
				start := time.Now()
				if err := d.Compare(ctx, batch, i > 0); err != nil {
					return false, err
				}
				for pause := time.Since(start); pause > 0; pause = set.compareDelay(d) {
					if err := pacing.Sleep(ctx, pause); err != nil {
						return false, err
					}
				}
			}
			return true, nil
		})
		if err = cmp.Or(err, scanErr); err != nil {
			return err
		}
	}
	return nil
}

// compareDelay returns the time until the next check whether more keys can be compared, or zero if
// they can be compared now. While a master has no vote, keys need not be compared: the masters
// are compared again once all of them vote, and a comparison would slow down a catch-up.
func (set *masterSet) compareDelay(d *database) time.Duration {
	switch {
	case !set.allVote():
		return comparePause
	case d.RepairsPending() > maxPendingRepairs:
		return time.Millisecond
	}
	return 0
}
