package quorum

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// sourcesNeeded is how many voting masters a master that forgot has to copy from, of n
// in all: so many that one of them is in every majority that its vote may have been a
// part of. See the package's notes on the guard.
func sourcesNeeded(n int) int { return n - Majority(n) + 1 }

var (
	errClaimed    = errors.New("another proxy is at it")
	errSourceLost = errors.New("a master that was copied from does not vote any more")
	errOvertaken  = errors.New("the master is not in that quarantine any more")
	errContended  = errors.New("the other masters do not agree on some keys")
)

const (
	// claimTime is how long a proxy has the catch-up of a master to itself, each time it
	// says so.
	claimTime = 3 * time.Second
	// settlePause is the time between two passes: what one master undoes meanwhile is
	// seen by the second.
	settlePause = 100 * time.Millisecond
	// longestPasses bounds the passes of one catch-up.
	longestPasses = 20
)

// source is a master that is copied from, and the marker under which it voted when that
// began.
type source struct {
	guard  *guard
	marker string
}

// voters are the masters that vote, but for number i.
func (c *Cluster) voters(i int) []source {
	var all []source
	for j, m := range c.masters {
		if marker := m.guard.marker(); j != i && marker != "" && !m.isDown() {
			all = append(all, source{m.guard, marker})
		}
	}
	return all
}

// catchUp copies to the master what it may have forgotten, and admits it.
func (g *guard) catchUp(ctx context.Context, v vitals, sources []source) error {
	began := time.Now()
	dbs, err := g.openDatabases(ctx, v.record, sources)
	if err != nil {
		return err
	}
	var copies []*copying
	for _, db := range dbs {
		copies = append(copies, &copying{
			db: db, quorum: Majority(len(g.cluster.masters)), into: g, record: v.record,
			copied: map[string]held{}, contended: map[string]bool{},
		})
	}
	keys, err := g.passes(ctx, v, sources, copies)
	if err != nil {
		return err
	}
	did, err := g.admit(ctx, v, "caughtup")
	switch {
	case err != nil:
		return err
	case did != 1:
		return errOvertaken
	}
	g.log.Info("master caught up", "master", g.name, "keys", keys, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// openDatabases claims the catch-up, and returns the databases to be copied: those that
// any of the sources, or the master itself, knows of.
func (g *guard) openDatabases(ctx context.Context, record string, sources []source) ([]int, error) {
	if err := g.claim(ctx, record); err != nil {
		return nil, err
	}
	own, err := g.ward.databases(ctx)
	if err != nil {
		return nil, err
	}
	dbs := own.databases
	for _, s := range sources {
		r, err := s.guard.ward.databases(ctx)
		if err != nil || r.marker != s.marker {
			return nil, errors.Join(errSourceLost, err)
		}
		g.cluster.longest.saw(s.guard.index, r.longest, true)
		dbs = append(dbs, r.databases...)
	}
	slices.Sort(dbs)
	dbs = slices.Compact(dbs)
	for _, db := range dbs {
		if err := g.overwrite(ctx, openScript, record, db); err != nil {
			return nil, err
		}
	}
	return append([]int{0}, dbs...), nil
}

func (g *guard) claim(ctx context.Context, record string) error {
	return g.overwrite(ctx, claimScript, record, g.cluster.id, millis(claimTime))
}

// overwrite runs a script that is for the proxy which has the catch-up.
func (g *guard) overwrite(ctx context.Context, s script, args ...any) error {
	did, err := g.ward.amend(ctx, s, args...)
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

// passes copies all databases, at least twice, until the sources agree. It returns the
// number of keys.
func (g *guard) passes(ctx context.Context, v vitals, sources []source, copies []*copying) (keys int, err error) {
	for n := range longestPasses {
		if err := g.claim(ctx, v.record); err != nil {
			return 0, err
		}
		settled := true
		keys = 0
		for _, c := range copies {
			views, err := viewsOf(ctx, sources, c.db)
			if err != nil {
				return 0, err
			}
			if err := c.pass(ctx, views); err != nil {
				return 0, err
			}
			settled = settled && c.settled
			keys += len(c.copied)
		}
		if n > 0 && settled {
			return keys, nil
		}
		if !sleep(ctx, nil, settlePause) {
			return 0, ctx.Err()
		}
	}
	return 0, errContended
}

// viewsOf reads a database of all sources, at the same time.
func viewsOf(ctx context.Context, sources []source, db int) ([]view, error) {
	views, errs := make([]view, len(sources)), make([]error, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		wg.Go(func() { views[i], errs[i] = s.read(ctx, db) })
	}
	wg.Wait()
	return views, errors.Join(errs...)
}

// view is what one master holds in a database, and when that ends by our clock.
type view map[string]held

// held is a key's value, and when it ends (zero: never).
type held struct {
	value string
	ends  time.Time
}

// read reads a whole database. Every page of it comes with the marker: so it is a
// master that votes, and forgot nothing meanwhile.
func (s source) read(ctx context.Context, db int) (view, error) {
	all, cursor := view{}, "0"
	for {
		p, err := s.guard.ward.page(ctx, db, cursor)
		if err != nil {
			return nil, err
		}
		if !s.stands(p, db) {
			return nil, errSourceLost
		}
		for i, key := range p.keys {
			h := held{value: p.entries[i].Value}
			if left := p.entries[i].Left; left >= 0 {
				h.ends = p.sighting.got.Add(left)
			}
			all[key] = h
		}
		if cursor = p.cursor; cursor == "0" {
			return all, nil
		}
	}
}

// stands reports whether the source still voted when it gave the page.
func (s source) stands(p page, db int) bool {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return s.guard.counts(s.marker, seen{db: db, marker: p.marker, sighting: p.sighting})
}

// laterThan orders ends: never is last.
func (h held) laterThan(other held) bool {
	if h.ends.IsZero() || other.ends.IsZero() {
		return h.ends.IsZero() && !other.ends.IsZero()
	}
	return h.ends.After(other.ends)
}

// choice is what the sources' views of a key come to.
type choice int

const (
	agreed   choice = iota // all that hold the key hold one value
	majority               // they do not, but one value has a majority of all masters
	split                  // neither
)

// settle chooses the value of a key, with the latest of its ends.
func settle(views []view, key string, quorum int) (held, choice) {
	var values []held
	var counts []int
	for _, v := range views {
		h, there := v[key]
		if !there {
			continue
		}
		i := slices.IndexFunc(values, func(other held) bool { return other.value == h.value })
		switch {
		case i < 0:
			values, counts = append(values, h), append(counts, 1)
		default:
			counts[i]++
			if h.laterThan(values[i]) {
				values[i] = h
			}
		}
	}
	if len(values) == 1 {
		return values[0], agreed
	}
	for i, n := range counts {
		if n >= quorum {
			return values[i], majority
		}
	}
	return held{}, split
}

// copying is the copy of one database into a master that forgot.
type copying struct {
	db, quorum int
	into       *guard
	record     string
	// copied is what was written; contended are the keys on which the sources did not
	// agree in the last pass. settled is set when nothing is left to look at again.
	copied    map[string]held
	contended map[string]bool
	settled   bool
}

// fillSize is how many keys are written at once.
const fillSize = 250

// pass writes what the sources hold now, and takes back what they hold no more.
func (c *copying) pass(ctx context.Context, views []view) error {
	now := time.Now()
	words := c.compare(views, now)
	for chunk := range slices.Chunk(words, 3*fillSize) {
		args := append([]any{c.record, c.db}, chunk...)
		if err := c.into.overwrite(ctx, fillScript, args...); err != nil {
			return err
		}
	}
	return nil
}

// compare makes the arguments of fillScript, and notes what will have been copied.
func (c *copying) compare(views []view, now time.Time) (words []any) {
	contended := map[string]bool{}
	c.settled = true
	here := map[string]bool{}
	for _, v := range views {
		for key := range v {
			if here[key] {
				continue
			}
			here[key] = true
			h, how := settle(views, key, c.quorum)
			if how != agreed {
				contended[key] = true
				c.settled = c.settled && how == majority && c.contended[key]
			}
			if how == split || !c.isNews(key, h) {
				continue
			}
			c.copied[key] = h
			words = append(words, key, h.value, leftOf(h, now))
		}
	}
	for key, h := range c.copied {
		if !here[key] {
			delete(c.copied, key)
			words = append(words, key, h.value, "-2")
		}
	}
	c.contended = contended
	return words
}

// sameEnd is by how much two looks at the same end may differ.
const sameEnd = 10 * time.Millisecond

// isNews reports whether a key was not copied like that already.
func (c *copying) isNews(key string, h held) bool {
	old, there := c.copied[key]
	old.ends = addUnlessZero(old.ends, sameEnd)
	return !there || old.value != h.value || h.laterThan(old)
}

func addUnlessZero(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

// leftOf is the remaining time of a key in milliseconds, rounded up, and at least one;
// -1: without end.
func leftOf(h held, now time.Time) string {
	if h.ends.IsZero() {
		return "-1"
	}
	left := h.ends.Sub(now) + time.Millisecond - 1
	return millis(max(left, time.Millisecond))
}
