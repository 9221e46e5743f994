package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

// claimTime is how long a proxy has the catch-up of a master to itself, each time it says so.
const claimTime = 3 * time.Second

// catchUp copies to the master what it may have forgotten, and admits it.
func (g *Guard) catchUp(ctx context.Context, v Report, from origin) error {
	began, proof := time.Now(), marker.ProofCaughtUp
	if from.member(g) >= 0 {
		proof = marker.ProofJoined
	}
	dbs, err := g.openDatabases(ctx, v.Record.Text, from)
	if err != nil {
		return err
	}
	keys, err := g.copyFrom(ctx, v, from, dbs)
	if err != nil {
		_ = g.claim(ctx, v.Record.Text, time.Millisecond) // another proxy may reach what this one does not
		return err
	}
	did, err := g.admit(ctx, v, proof)
	switch {
	case err != nil:
		return err
	case did != 1:
		return errOvertaken
	}
	g.caughtUp()
	g.log.Info("master caught up", "master", g.Name, "keys", keys, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// caughtUp counts a catch-up.
func (g *Guard) caughtUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUps++
}

// openDatabases claims the catch-up, and returns the databases to be copied: those that
// any of the sources, or the master itself, knows of.
func (g *Guard) openDatabases(ctx context.Context, record string, from origin) ([]int, error) {
	if err := g.claim(ctx, record, claimTime); err != nil {
		return nil, err
	}
	own, err := databasesOf(ctx, g.Conn)
	if err != nil {
		return nil, err
	}
	dbs := own.databases
	for _, s := range from.sources {
		r, err := databasesOf(ctx, s.guard.Conn)
		if err != nil || r.marker != marker.InDatabase(s.trust.String(), 0) {
			return nil, errors.Join(errSourceLost, err)
		}
		g.set.longest.Saw(s.guard.index, r.longest, !from.before)
		dbs = append(dbs, r.databases...)
	}
	slices.Sort(dbs)
	dbs = slices.Compact(dbs)
	for _, db := range dbs {
		if err := g.overwrite(ctx, script.Open, record, db); err != nil {
			return nil, err
		}
		for _, s := range from.sources {
			if !s.guard.isEnrolled(db) {
				s.guard.enrol(ctx, db, s.trust)
			}
		}
	}
	return append([]int{0}, dbs...), nil
}

// claim has this proxy alone do the catch-up for a while.
func (g *Guard) claim(ctx context.Context, record string, lasts time.Duration) error {
	return g.overwrite(ctx, script.Claim, record, g.set.id, marker.Millis(lasts))
}

// overwrite runs a script that is for the proxy which has the catch-up.
func (g *Guard) overwrite(ctx context.Context, s luascript.Script, args ...any) error {
	did, err := amend(ctx, g.Conn, s, args...)
	switch {
	case err != nil:
		return err
	case did == 0:
		return errClaimed
	case did < 0:
		return errOvertaken
	}
	return nil
}
