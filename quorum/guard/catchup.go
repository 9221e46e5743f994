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

// reserveTime is how long one reservation of a catch-up lasts.
const reserveTime = 3 * time.Second

// catchUp copies to the master the keys that it may have lost, and admits it.
func (g *Guard) catchUp(ctx context.Context, v Report, from sourceSet) error {
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
		_ = g.reserve(ctx, v.Record.Text, time.Millisecond) // another proxy may reach masters that this proxy does not
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

func (g *Guard) caughtUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.catchUps++
}

// openDatabases reserves the catch-up, and returns the databases to copy: all that a source or the
// master itself knows.
func (g *Guard) openDatabases(ctx context.Context, record string, from sourceSet) ([]int, error) {
	if err := g.reserve(ctx, record, reserveTime); err != nil {
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
		g.set.maxTTLInUse.Saw(s.guard.index, r.longest, !from.before)
		dbs = append(dbs, r.databases...)
	}
	slices.Sort(dbs)
	dbs = slices.Compact(dbs)
	for _, db := range dbs {
		if err := g.runReserved(ctx, script.Open, record, db); err != nil {
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

func (g *Guard) reserve(ctx context.Context, record string, lasts time.Duration) error {
	return g.runReserved(ctx, script.Claim, record, g.set.id, marker.Millis(lasts))
}

// runReserved runs a script that succeeds only for the proxy that has reserved the catch-up.
func (g *Guard) runReserved(ctx context.Context, s luascript.Script, args ...any) error {
	did, err := runInt(ctx, g.Conn, s, args...)
	switch {
	case err != nil:
		return err
	case did == 0:
		return errReserved
	case did < 0:
		return errOvertaken
	}
	return nil
}
