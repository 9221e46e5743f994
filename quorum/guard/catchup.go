package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/contained"
	"redlock-proxy/quorum/guard/copying"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

var (
	errClaimed    = errors.New("another proxy is at it")
	errSourceLost = errors.New("a master that was copied from does not vote any more")
	errOvertaken  = errors.New("the master is not in that quarantine any more")
)

// openKeysError ends a catch-up of which two incarnations of some keys, each of them perhaps a lock, are the
// reason: it is tried again, and ends when one of them does.
type openKeysError struct{ keys []string }

// maxOpenKeys bounds how many of them are named.
const maxOpenKeys = 5

// Error names some of the keys.
func (e *openKeysError) Error() string {
	return fmt.Sprintf("the other masters do not agree on %d keys, such as %q", len(e.keys), e.keys[:min(maxOpenKeys, len(e.keys))])
}

const (
	// claimTime is how long a proxy has the catch-up of a master to itself, each time it
	// says so.
	claimTime = 3 * time.Second
	// settlePause is the time between two passes: what one master undoes meanwhile is
	// seen by the second.
	settlePause = 100 * time.Millisecond
	// longestPasses bounds the passes of one catch-up.
	longestPasses = 20
	// fillSize is how many keys are written at once.
	fillSize = 250
)

// source is a master that is copied from, and what it votes under when that begins.
type source struct {
	guard *Guard
	trust trust
}

// voters are the masters that vote, but for number i.
func (s *Set) voters(i int) []source {
	var all []source
	for j, g := range s.guards {
		if t := g.trusted(); j != i && t.nonce != "" && !t.over && !g.IsDown() {
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
	return o.masters > 0 && len(o.sources) >= copying.SourcesNeeded(o.masters)
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
	dbs, err := g.openDatabases(ctx, v.Record, from)
	if err != nil {
		return err
	}
	keys, err := g.passes(ctx, v, from, dbs)
	if err != nil {
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
	if err := g.claim(ctx, record); err != nil {
		return nil, err
	}
	own, err := databasesOf(ctx, g.Conn)
	if err != nil {
		return nil, err
	}
	dbs := own.databases
	for _, s := range from.sources {
		r, err := databasesOf(ctx, s.guard.Conn)
		if err != nil || r.marker != marker.InDatabase(s.trust.marker, 0) {
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

func (g *Guard) claim(ctx context.Context, record string) error {
	return g.overwrite(ctx, script.Claim, record, g.set.id, marker.Millis(claimTime))
}

// overwrite runs a script that is for the proxy which has the catch-up.
func (g *Guard) overwrite(ctx context.Context, s script.Script, args ...any) error {
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

// passes copies all databases until nothing is left open. The first pass only looks, the
// second writes, the third looks whether what was written is still so. The first also raises the
// fence counters, which only grow. It returns the number of keys.
func (g *Guard) passes(ctx context.Context, v Report, from origin, dbs []int) (keys int, err error) {
	r, _ := marker.ParseRecord(v.Record)
	sources := from.sources
	copies := map[int]*copying.Copy{}
	for n := range longestPasses {
		if err := g.claim(ctx, v.Record); err != nil {
			return 0, err
		}
		settled := n > 0
		keys = 0
		for _, db := range dbs {
			views, err := viewsOf(ctx, sources, db, n == 0)
			if err != nil {
				return 0, err
			}
			if n == 0 {
				if err := g.fill(ctx, v.Record, db, copying.Fences(views)); err != nil {
					return 0, err
				}
				own, err := g.ownView(ctx, db)
				if err != nil {
					return 0, err
				}
				copies[db] = copying.New(copying.Census{Masters: from.masters, Sources: len(sources)}, r.Reason == string(ClockStepped), own, views)
				if i := from.member(g); i >= 0 {
					copies[db].Joins(i)
				}
				continue
			}
			steps, done := copies[db].Pass(views)
			if err := g.fill(ctx, v.Record, db, steps); err != nil {
				return 0, err
			}
			settled = settled && done
			keys += copies[db].Keys()
		}
		if settled {
			return keys, nil
		}
		if !sleep(ctx, settlePause) {
			return 0, ctx.Err()
		}
	}
	open := &openKeysError{}
	for _, db := range dbs {
		open.keys = append(open.keys, copies[db].Open()...)
	}
	return 0, open
}

// fill does the steps, with the ends as the master's clock will tell them.
func (g *Guard) fill(ctx context.Context, record string, db int, steps []copying.Step) error {
	for chunk := range slices.Chunk(steps, fillSize) {
		args := []any{record, db}
		for _, s := range chunk {
			args = append(args, s.Key, string(s.Act), s.Held.String(), g.endOf(s.Held))
		}
		if err := g.overwrite(ctx, script.Fill, args...); err != nil {
			return err
		}
	}
	return nil
}

// endOf is when it ends by the master's clock, in whole milliseconds, rounded up; -1: never.
func (g *Guard) endOf(h copying.Held) string {
	if h.Ends.IsZero() {
		return "-1"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return strconv.FormatInt((g.clock.Told(h.Ends) + time.Millisecond - 1).Milliseconds(), 10)
}

// viewsOf reads a database of all sources, at the same time, with or without the fence counters.
func viewsOf(ctx context.Context, sources []source, db int, fences bool) ([]copying.View, error) {
	views, errs := make([]copying.View, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() {
			errs[i] = contained.Run(func() (err error) {
				views[i], err = s.read(ctx, db, fences)
				return err
			})
		})
	}
	wg.Wait()
	return views, errors.Join(errs...)
}

// read reads a whole database. Every page of it comes with the marker: so it is a
// master that votes, and forgot nothing meanwhile.
func (s source) read(ctx context.Context, db int, fences bool) (copying.View, error) {
	return s.guard.readAll(ctx, db, fences, func(p page, floor int64) bool { return s.stands(p, db, floor) }, marker.InDatabase(s.trust.nonce, db))
}

// ownView is what the master itself holds.
func (g *Guard) ownView(ctx context.Context, db int) (copying.View, error) {
	return g.readAll(ctx, db, false, func(page, int64) bool { return true }, marker.NoClaim)
}

func (g *Guard) readAll(ctx context.Context, db int, fences bool, stands func(p page, floor int64) bool, field string) (copying.View, error) {
	all, cursor, own := copying.View{}, "0", ""
	if fences {
		own = cell.FencePrefix
	}
	for {
		floor := g.age(field)
		p, err := readPage(ctx, g.Conn, db, cursor, field, own)
		if err != nil {
			return nil, err
		}
		if !stands(p, floor) {
			return nil, errSourceLost
		}
		g.note(p, all)
		if cursor = p.cursor; cursor == "0" {
			return all, nil
		}
	}
}

// note adds what a page tells to a view.
func (g *Guard) note(p page, all copying.View) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range p.entries {
		h := copying.Held{Cell: cell.Parse(e.value)}
		if e.left >= 0 {
			h.Ends = g.clock.Latest(p.sighting.Told + e.left)
		}
		all[e.key] = h
	}
}

// stands reports whether the source still voted when it gave the page.
func (s source) stands(p page, db int, floor int64) bool {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	seen := &look{
		db: db, field: marker.InDatabase(s.trust.nonce, db), floor: floor, sequence: p.sequence, number: true,
		sighting: p.sighting,
	}
	voted := s.guard.voted
	counts := s.guard.counts(s.trust, seen)
	s.guard.voted = voted
	return counts && p.marker == marker.InDatabase(s.trust.marker, db)
}

// sleep waits for the pause to end; false: ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
