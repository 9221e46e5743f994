package quorum

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
)

// A master that was away has missed changes, and a proxy that died may have left changes
// unfinished. As soon as all masters vote, this file compares their data. Package register repairs
// the differences.

const (
	// comparePause is the wait between two checks whether a comparison is needed.
	comparePause = 250 * time.Millisecond
	// comparedAtOnce is the number of keys that are read at a time. Their values may be large.
	comparedAtOnce = 50
	// maxRepairing limits the number of keys under repair while further keys are compared.
	maxRepairing = 4096
)

// anyDatabase stands for all databases.
const anyDatabase = -1

// compareMissed compares the databases in which masters may have missed changes, whenever all
// masters vote, until ctx ends.
func (set *masterSet) compareMissed(ctx context.Context) {
	set.missed.add(anyDatabase)
	var peers []string
	for pacing.Sleep(ctx, comparePause) == nil {
		peersNow := set.guards.Peers()
		if slices.ContainsFunc(peers, func(id string) bool { return !slices.Contains(peersNow, id) }) {
			set.missed.add(anyDatabase) // no other proxy finishes the changes that this peer began
		}
		peers = peersNow
		if set.allVote() {
			set.compareAll(ctx)
		}
	}
}

// compareAll compares the databases in which a master may lack changes.
func (set *masterSet) compareAll(ctx context.Context) {
	databases := slices.Collect(maps.Keys(set.missed.take()))
	if slices.Contains(databases, anyDatabase) {
		var err error
		if databases, err = set.Databases(ctx); err != nil {
			set.missed.add(anyDatabase)
			return
		}
	}
	for _, db := range databases {
		if err := set.compare(ctx, db); err != nil {
			set.missed.add(db)
		}
	}
}

// compare compares the keys of a database. It works half of the time, to delay other commands
// little.
func (set *masterSet) compare(ctx context.Context, db int) error {
	d := set.database(db)
	for i, m := range set.masters {
		_, failed, err := namesOn(ctx, m, db, func(names []string) (more bool, err error) {
			for part := range slices.Chunk(names, comparedAtOnce) {
				began := time.Now()
				if err := d.Compare(ctx, part, i > 0); err != nil {
					return false, err
				}
				for pause := time.Since(began); pause > 0; pause = set.compareDelay(d) {
					if err := pacing.Sleep(ctx, pause); err != nil {
						return false, err
					}
				}
			}
			return true, nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// compareDelay returns the time until the next check whether more keys can be compared, or zero if
// they can be compared now. Keys need not be compared while a master has no vote, and a master that
// catches up is busy enough.
func (set *masterSet) compareDelay(d *database) time.Duration {
	switch {
	case !set.allVote():
		return comparePause
	case d.RepairsPending() > maxRepairing:
		return time.Millisecond
	}
	return 0
}
