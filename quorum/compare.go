package quorum

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"redlock-proxy/internal/pacing"
)

// What masters missed that were away, and what a proxy that ended has left undone, is found by
// comparing what all masters hold as soon as all are well; package register mends what differs.

const (
	// comparePause is the wait between two looks whether there is reason to compare.
	comparePause = 250 * time.Millisecond
	// comparedAtOnce are the keys that are read at a time: their values may be large.
	comparedAtOnce = 50
	// mostMending bounds the keys that are being mended while others are still to be compared.
	mostMending = 4096
)

// anyDatabase stands for all of them.
const anyDatabase = -1

// compareMissed compares what masters may have missed whenever all are well, until ctx ends.
func (g *generation) compareMissed(ctx context.Context) {
	g.missed.in(anyDatabase)
	var peers []string
	for pacing.Sleep(ctx, comparePause) == nil {
		now := g.guards.Peers()
		if slices.ContainsFunc(peers, func(id string) bool { return !slices.Contains(now, id) }) {
			g.missed.in(anyDatabase) // what that one began, nobody else goes on with
		}
		peers = now
		if g.isWell() {
			g.compareAll(ctx)
		}
	}
}

// compareAll compares the databases of which something may be missing.
func (g *generation) compareAll(ctx context.Context) {
	databases := slices.Collect(maps.Keys(g.missed.take()))
	if slices.Contains(databases, anyDatabase) {
		var err error
		if databases, err = g.Databases(ctx); err != nil {
			g.missed.in(anyDatabase)
			return
		}
	}
	for _, db := range databases {
		if err := g.compare(ctx, db); err != nil {
			g.missed.in(db)
		}
	}
}

// compare compares the keys of a database. It works half of the time, so that it holds up nobody
// for long.
func (g *generation) compare(ctx context.Context, db int) error {
	k := g.keyspace(db)
	for i, m := range g.masters {
		_, failed, err := namesOn(ctx, m, db, func(names []string) (more bool, err error) {
			for part := range slices.Chunk(names, comparedAtOnce) {
				began := time.Now()
				if err := k.Compare(ctx, part, i > 0); err != nil {
					return false, err
				}
				for pause := time.Since(began); pause > 0; pause = g.unready(k) {
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

// unready is after what time to look again whether more keys are to be compared; zero: they are.
// What masters without a vote hold need not be known, and one that catches up has enough to do.
func (g *generation) unready(k *keyspace) time.Duration {
	switch {
	case !g.isWell():
		return comparePause
	case k.Mending() > mostMending:
		return time.Millisecond
	}
	return 0
}
