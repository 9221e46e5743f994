package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/internal/luascript"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/vote"
)

var (
	errClaimed     = errors.New("another proxy is at it")
	errInterrupted = errors.New("another proxy went on with it, or began another quarantine")
	errSourceLost  = errors.New("a master that was copied from does not vote any more")
	errOvertaken   = errors.New("the master is not in that quarantine any more")

	errUnsettledKeys = errors.New("who holds some keys at the other masters changes with every look")
)

// claimTime is how long a proxy has the catch-up of a master to itself, each time it says so.
const claimTime = 3 * time.Second

// source is a master that is copied from, and what it votes under when that begins.
type source struct {
	guard *Guard
	trust trust
}

// voters are the masters that vote, but for number i.
func (s *Set) voters(i int) []source {
	var all []source
	for j, g := range s.guards {
		if t := g.trusted(); j != i && t.Nonce != "" && !t.over && !g.IsDown() {
			all = append(all, source{g, t})
		}
	}
	return all
}

// origin is what a master is copied from: sources, and of how many masters they are some.
type origin struct {
	sources []source
	masters int
	// before is set where these are masters of the set before.
	before bool
}

// enough reports whether one of the sources is in every majority.
func (o origin) enough() bool {
	return o.masters > 0 && len(o.sources) >= vote.ReadQuorum(o.masters)
}

// provedSince reports whether all sources proved that they vote, after a moment.
func (o origin) provedSince(t time.Time) bool {
	return !slices.ContainsFunc(o.sources, func(s source) bool {
		s.guard.mu.Lock()
		defer s.guard.mu.Unlock()
		return !s.guard.proved.After(t)
	})
}

// wake has all sources looked at.
func (o origin) wake() {
	for _, s := range o.sources {
		s.guard.Wake()
	}
}

// member is the source that a guard's master itself is, by its number, or -1.
func (o origin) member(g *Guard) int {
	return slices.IndexFunc(o.sources, func(s source) bool { return s.guard == g })
}

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
