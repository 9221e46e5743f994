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

// reservationTime is the duration of one reservation of a catch-up.
const reservationTime = 3 * time.Second

// catchUp copies to the master the keys that the master may have lost, and admits the master.
func (g *Guard) catchUp(ctx context.Context, v Report, from sourceSet) error {
	start, proof := time.Now(), marker.ProofCaughtUp
	if from.indexOf(g) >= 0 {
		proof = marker.ProofJoined
	}
	dbs, err := g.openDatabases(ctx, v.Record.Text, from)
	if err != nil {
		return err
	}
	keys, err := g.copyFrom(ctx, v, from, dbs)
	if err != nil {
		// Give up the reservation: another proxy may reach masters that this proxy does not reach.
		_ = g.reserveCatchUp(ctx, v.Record.Text, time.Millisecond)
		return err
	}
	result, err := g.admit(ctx, v, proof)
	switch {
	case err != nil:
		return err
	case result != 1:
		return errOvertaken
	}
	g.catchUps.Add(1)
	g.log.Info("master caught up", "master", g.Name, "keys", keys, "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// openDatabases reserves the catch-up, and returns the databases to copy: database 0, and all
// databases that a source or the master itself lists. It copies the record to each of them, and
// ensures that each of them has a marker on every source.
func (g *Guard) openDatabases(ctx context.Context, record string, from sourceSet) ([]int, error) {
	if err := g.reserveCatchUp(ctx, record, reservationTime); err != nil {
		return nil, err
	}
	ownList, err := databasesOf(ctx, g.Conn)
	if err != nil {
		return nil, err
	}
	dbs := ownList.databases
	for _, s := range from.sources {
		list, err := databasesOf(ctx, s.guard.Conn)
		if err != nil || list.marker != marker.AppendDatabase(s.trust.String(), 0) {
			return nil, errors.Join(errSourceLost, err)
		}
		g.set.maxTTLInUse.Observe(s.guard.index, list.longestTTL, !from.isFormer)
		dbs = append(dbs, list.databases...)
	}
	slices.Sort(dbs)
	dbs = slices.Compact(dbs)
	for _, db := range dbs {
		if err := g.runReserved(ctx, script.OpenDatabase, record, db); err != nil {
			return nil, err
		}
		for _, s := range from.sources {
			if s.guard.NeedsEnrolment(db) {
				s.guard.enrol(ctx, db, s.trust)
			}
		}
	}
	return append([]int{0}, dbs...), nil
}

// reserveCatchUp reserves the catch-up for this proxy, or renews the reservation.
func (g *Guard) reserveCatchUp(ctx context.Context, record string, ttl time.Duration) error {
	return g.runReserved(ctx, script.ReserveCatchUp, record, g.set.opts.ID, marker.FormatMillis(ttl))
}

// runReserved runs a script of a catch-up. It returns errReserved if another proxy has reserved the
// catch-up, and errOvertaken if the master's record has changed.
func (g *Guard) runReserved(ctx context.Context, s luascript.Script, args ...any) error {
	result, err := runInt(ctx, g.Conn, s, args...)
	switch {
	case err != nil:
		return err
	case result == 0:
		return errReserved
	case result < 0:
		return errOvertaken
	}
	return nil
}
