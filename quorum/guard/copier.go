package guard

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard/marker"
	"redlock-proxy/quorum/guard/script"
)

const (
	// settlePause is the time between two passes over the same keys: what one master undoes
	// meanwhile is seen by the next.
	settlePause = 100 * time.Millisecond
	// longestPasses bounds the passes over them; in so many it may turn out which of two leftovers
	// is one.
	longestPasses, openPasses = 20, 5
	// maxOpenKeys bounds how many keys are named.
	maxOpenKeys = 5
	// pagesAtOnce is how many pages are between their first pass and their last; pagesAsking how
	// many of these ask masters at a time.
	pagesAtOnce, pagesAsking = 32, 3
	// fillSize is how many keys are written at once.
	fillSize = 250
)

// copier copies what the sources hold to a master that forgot. It learns the names of the keys from
// all sources and from the master itself, and copies a page of them at a time: so what it needs
// does not grow with the number of keys, but for a fingerprint of each name.
type copier struct {
	*Guard
	record  string
	stepped bool
	from    origin
	// fail ends all pages.
	fail         context.CancelCauseFunc
	pages        sync.WaitGroup
	room, asking chan struct{}
	keys         atomic.Int64
}

// copyFrom copies these databases, and returns the number of keys.
func (g *Guard) copyFrom(ctx context.Context, v Report, from origin, dbs []int) (int64, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &copier{
		Guard: g, record: v.Record.Text, stepped: v.Record.Value.Reason == string(ClockStepped), from: from, fail: fail,
		room: make(chan struct{}, pagesAtOnce), asking: make(chan struct{}, pagesAsking),
	}
	var keeper sync.WaitGroup
	keeper.Go(func() { c.keepClaim(ctx) })
	for _, db := range dbs {
		if err := c.walk(ctx, db); err != nil {
			fail(err)
			break
		}
	}
	c.pages.Wait()
	err := context.Cause(ctx)
	fail(nil)
	keeper.Wait()
	return c.keys.Load(), err
}

// walk begins the pages of a database, each name in one of them. All masters list their names at
// the same time. A source that holds a key from before the walk until its end names it; that it
// forgot nothing meanwhile a look afterwards shows.
func (c *copier) walk(ctx context.Context, db int) error {
	names, errs := newNames(), make([]error, len(c.from.sources)+1)
	var wg sync.WaitGroup
	read := func(i int, read func() error) {
		wg.Go(func() {
			if errs[i] = contained.Run(read); errs[i] != nil {
				c.fail(errs[i])
			}
		})
	}
	for i, s := range c.from.sources {
		read(i, func() error {
			if err := c.scan(ctx, s.guard.Conn, db, names, cell.FencePrefix); err != nil {
				return err
			}
			return again(ctx, func() error { _, err := s.read(ctx, db, nil); return err })
		})
	}
	read(len(c.from.sources), func() error { return c.scan(ctx, c.Conn, db, names) })
	wg.Wait()
	c.begin(ctx, db, names, 1)
	return errors.Join(errs...)
}

// scan has a master list its names, and begins a page whenever there are enough that no other
// listed before.
func (c *copier) scan(ctx context.Context, w Conn, db int, names *names, own ...any) error {
	for cursor, first := "0", true; (first || cursor != "0") && ctx.Err() == nil; first = false {
		err := again(ctx, func() error {
			some, at, err := readNames(ctx, w, db, cursor, own...)
			if err == nil {
				cursor = at
				names.add(some)
			}
			return err
		})
		if err != nil {
			return err
		}
		c.begin(ctx, db, names, pageSize)
	}
	return nil
}

// again tries what may fail once, where a master took too long to answer.
func again(ctx context.Context, try func() error) (err error) {
	for n := range longestPasses {
		if n > 0 && pacing.Sleep(ctx, settlePause) != nil {
			return context.Cause(ctx)
		}
		if err = try(); err == nil || isFinal(err) {
			break
		}
	}
	return err
}

// isFinal reports whether a catch-up that failed with an error has to begin anew.
func isFinal(err error) bool {
	return errors.Is(err, errSourceLost) || errors.Is(err, errClaimed) || errors.Is(err, errOvertaken)
}

// names are those that are still to be copied, each once: those that were listed before are known
// by a fingerprint of 128 bits.
type names struct {
	seeds [2]maphash.Seed
	mu    sync.Mutex
	seen  map[[2]uint64]struct{}
	next  []string
}

func newNames() *names {
	return &names{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: map[[2]uint64]struct{}{}}
}

func (n *names) add(listed []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range listed {
		print := [2]uint64{maphash.String(n.seeds[0], name), maphash.String(n.seeds[1], name)}
		if _, known := n.seen[print]; !known {
			n.seen[print] = struct{}{}
			n.next = append(n.next, name)
		}
	}
}

// page takes some of them, if there are so many.
func (n *names) page(least int) (page []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.next) < least {
		return nil
	}
	most := min(pageSize, len(n.next))
	page, n.next = n.next[:most:most], n.next[most:]
	return page
}

// begin has pages copied while there are so many names, once there is room for each.
func (c *copier) begin(ctx context.Context, db int, names *names, least int) {
	for page := names.page(least); page != nil; page = names.page(least) {
		select {
		case c.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c.pages.Go(func() {
			defer func() { <-c.room }()
			if err := contained.Run(func() error { return c.page(ctx, db, page) }); err != nil {
				c.fail(err)
			}
		})
	}
}

// page makes passes over some keys until nothing is left open. The first only looks, the second
// writes, the third looks whether what was written is still so.
func (c *copier) page(ctx context.Context, db int, names []string) error {
	var k *keysCopy
	var failed error
	for n := range longestPasses {
		if n > 1 && pacing.Sleep(ctx, settlePause) != nil {
			break
		}
		if n == openPasses {
			c.close(k)
		}
		next, settled, err := c.pass(ctx, db, names, k)
		switch k = next; {
		case isFinal(err), ctx.Err() != nil:
			return err
		case settled:
			c.keys.Add(int64(k.Keys()))
			return nil
		}
		failed = err
	}
	if failed != nil || ctx.Err() != nil {
		return failed
	}
	return errUnsettledKeys
}

// close has what is open be blocked, and names it in the log. Beside an earlier version it stays
// open: that takes an undecided copy for one of an incarnation.
func (c *copier) close(k *keysCopy) {
	if k == nil || c.set.isBesideEarlier() {
		return
	}
	if open := k.Close(); len(open) > 0 {
		c.log.Warn("nobody can know who holds some keys: they are refused until the last of their leases is over, or FORCEUNLOCK", "master", c.Name, "keys", len(open), "some", open[:min(maxOpenKeys, len(open))])
	}
}

// pass is one over some keys. The first also raises the fence counters, which only grow.
func (c *copier) pass(ctx context.Context, db int, names []string, k *keysCopy) (next *keysCopy, settled bool, err error) {
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return k, false, ctx.Err()
	}
	own, views, err := c.views(ctx, db, names)
	switch {
	case err != nil:
		return k, false, err
	case k == nil:
		fences, ahead := copiedFences(views, c.set.Clock(time.Now()))
		for i, key := range ahead {
			c.set.FenceAhead(c.from.sources[i].guard.Name, strings.TrimPrefix(key, cell.FencePrefix))
		}
		if err := c.fill(ctx, db, fences); err != nil {
			return nil, false, err
		}
		return newCopy(census{Masters: c.from.masters, Sources: len(views)}, c.stepped, c.from.member(c.Guard), own, views), false, nil
	}
	steps, settled := k.Pass(own, views)
	if err = c.fill(ctx, db, steps); err != nil {
		k.Failed(steps)
	}
	return k, settled && err == nil, err
}

// keepClaim keeps the catch-up this proxy's, whatever part of it takes long, and ends it once it is
// another's.
func (c *copier) keepClaim(ctx context.Context) {
	for pacing.Sleep(ctx, claimTime/3) == nil {
		if err := contained.Run(func() error { return c.claim(ctx, c.record, claimTime) }); isFinal(err) {
			c.fail(errInterrupted)
		}
	}
}

// views reads some keys of the master itself, and of all sources, at the same time.
func (c *copier) views(ctx context.Context, db int, names []string) (own view, views []view, err error) {
	views, errs := make([]view, len(c.from.sources)), make([]error, len(c.from.sources)+1)
	var wg sync.WaitGroup
	for i, s := range c.from.sources {
		wg.Go(func() {
			errs[i] = contained.Run(func() (err error) {
				views[i], err = s.read(ctx, db, names)
				return err
			})
		})
	}
	p, err := readValues(ctx, c.Conn, db, marker.NoClaim, names)
	if err == nil {
		own, err = c.view(p), c.sighted(p)
	}
	errs[len(views)] = err
	wg.Wait()
	return own, views, errors.Join(errs...)
}

// sighted is an error where the master's clock does not fit, by which the ends are computed of what
// is copied.
func (c *copier) sighted(p page) error {
	c.Guard.mu.Lock()
	defer c.Guard.mu.Unlock()
	if p.sighting.IsZero() || !c.observeClock(p.sighting) {
		return errOvertaken
	}
	return nil
}

// read reads some keys. With them comes the marker: so it is a master that votes, and forgot
// nothing meanwhile.
func (s source) read(ctx context.Context, db int, names []string) (view, error) {
	floor := s.guard.age(marker.InDatabase(s.trust.Nonce, db))
	p, err := readValues(ctx, s.guard.Conn, db, marker.InDatabase(s.trust.Nonce, db), names)
	switch {
	case err != nil && !s.guard.IsDown() && s.guard.trusted().term == s.trust.term:
		return nil, err
	case err != nil, !s.votedFor(p, db, floor):
		return nil, errors.Join(errSourceLost, err)
	}
	return s.guard.view(p), nil
}

// view is what a page holds, with the ends by our clock.
func (g *Guard) view(p page) view {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(view, len(p.values))
	for name, e := range p.values {
		h := heldCell{Cell: cell.Parse(e.value)}
		if h.Form == cell.Mark {
			continue // as if nothing were there
		}
		if e.left >= 0 {
			h.Ends = g.clock.Latest(p.sighting.ServerTime + e.left)
		}
		all[name] = h
	}
	return all
}

// votedFor reports whether the source still voted when it gave the page.
func (s source) votedFor(p page, db int, floor int64) bool {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	seen := &look{
		db: db, field: marker.InDatabase(s.trust.Nonce, db), floor: floor, sequence: p.sequence, number: true,
		sighting: p.sighting,
	}
	return s.guard.counts(s.trust, seen) && p.marker == marker.InDatabase(s.trust.String(), db)
}

// fill does the steps, with the ends by the master's clock.
func (c *copier) fill(ctx context.Context, db int, steps []copyStep) error {
	for len(steps) > 0 {
		args, now := []any{c.record, db}, steps[:min(fillSize, len(steps))]
		for _, s := range now {
			args = append(args, s.Key, string(s.Act), s.Held.String(), c.endOf(s.Held))
		}
		if err := c.overwrite(ctx, script.Fill, args...); err != nil {
			return err
		}
		steps = steps[len(now):]
	}
	return nil
}

// endOf is when it ends by the master's clock, in whole milliseconds, rounded up; -1: never.
func (g *Guard) endOf(h heldCell) string {
	if h.Ends.IsZero() {
		return "-1"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return strconv.FormatInt((g.clock.ServerTime(h.Ends) + time.Millisecond - 1).Milliseconds(), 10)
}

var (
	errClaimed     = errors.New("another proxy is at it")
	errInterrupted = errors.New("another proxy went on with it, or began another quarantine")
	errSourceLost  = errors.New("a master that was copied from does not vote any more")
	errOvertaken   = errors.New("the master is not in that quarantine any more")

	errUnsettledKeys = errors.New("who holds some keys at the other masters changes with every look")
)
