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
	// passPause is the time between two passes over the same keys. A pass sees what a master has
	// undone since the previous pass.
	passPause = 100 * time.Millisecond
	// maxPasses limits the passes over a page. After blockAfter passes, keys with several possible
	// incarnations get undecided copies.
	maxPasses, blockAfter = 20, 5
	// maxNamedKeys limits the number of keys that are logged.
	maxNamedKeys = 5
	// maxPages limits the pages between their first and their last pass. maxAskingPages limits the
	// pages that send requests to masters.
	maxPages, maxAskingPages = 32, 3
	// fillSize is the number of keys that are written at once.
	fillSize = 250
)

// copier copies the sources' keys to a master that has lost data. It learns the names of the keys
// from all sources and from the master itself, and copies one page of them at a time. So its memory
// does not grow with the number of keys, except for a fingerprint of each name.
type copier struct {
	*Guard
	record  string
	stepped bool
	from    sourceSet
	// fail stops all pages.
	fail                context.CancelCauseFunc
	pages               sync.WaitGroup
	pageSlots, askSlots chan struct{}
	keys                atomic.Int64
}

// copyFrom copies these databases, and returns the number of keys.
func (g *Guard) copyFrom(ctx context.Context, v Report, from sourceSet, dbs []int) (int64, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &copier{
		Guard: g, record: v.Record.Text, stepped: v.Record.Value.Reason == string(ClockStepped), from: from, fail: fail,
		pageSlots: make(chan struct{}, maxPages), askSlots: make(chan struct{}, maxAskingPages),
	}
	var keeper sync.WaitGroup
	keeper.Go(func() { c.keepReservation(ctx) })
	for _, db := range dbs {
		if err := c.copyDatabase(ctx, db); err != nil {
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

// copyDatabase copies a database in pages; each name is in exactly one page. All masters list their
// names at the same time. A source lists every key that it holds throughout the listing. The proxy
// checks afterwards that the source has lost no data meanwhile.
func (c *copier) copyDatabase(ctx context.Context, db int) error {
	names, errs := newNameQueue(), make([]error, len(c.from.sources)+1)
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
			return retry(ctx, func() error { _, err := s.read(ctx, db, nil); return err })
		})
	}
	read(len(c.from.sources), func() error { return c.scan(ctx, c.Conn, db, names) })
	wg.Wait()
	c.startPages(ctx, db, names, 1)
	return errors.Join(errs...)
}

// scan lists a master's names, and starts a page whenever it has enough new names.
func (c *copier) scan(ctx context.Context, w Conn, db int, names *nameQueue, own ...any) error {
	for cursor, first := "0", true; (first || cursor != "0") && ctx.Err() == nil; first = false {
		err := retry(ctx, func() error {
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
		c.startPages(ctx, db, names, pageSize)
	}
	return nil
}

// retry repeats a request that may fail once because a master replied too late.
func retry(ctx context.Context, try func() error) (err error) {
	for n := range maxPasses {
		if n > 0 && pacing.Sleep(ctx, passPause) != nil {
			return context.Cause(ctx)
		}
		if err = try(); err == nil || isFinal(err) {
			break
		}
	}
	return err
}

// isFinal reports whether the catch-up must start over after this error.
func isFinal(err error) bool {
	return errors.Is(err, errSourceLost) || errors.Is(err, errReserved) || errors.Is(err, errOvertaken)
}

// nameQueue holds the names that are still to be copied, each once. It recognizes earlier names by
// a fingerprint of 128 bits.
type nameQueue struct {
	seeds [2]maphash.Seed
	mu    sync.Mutex
	seen  map[[2]uint64]struct{}
	next  []string
}

func newNameQueue() *nameQueue {
	return &nameQueue{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, seen: map[[2]uint64]struct{}{}}
}

func (n *nameQueue) add(listed []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range listed {
		fingerprint := [2]uint64{maphash.String(n.seeds[0], name), maphash.String(n.seeds[1], name)}
		if _, known := n.seen[fingerprint]; !known {
			n.seen[fingerprint] = struct{}{}
			n.next = append(n.next, name)
		}
	}
}

// page takes up to pageSize names, or none if there are fewer than least.
func (n *nameQueue) page(least int) (page []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.next) < least {
		return nil
	}
	most := min(pageSize, len(n.next))
	page, n.next = n.next[:most:most], n.next[most:]
	return page
}

// startPages starts pages while there are enough names, each as soon as there is a free slot.
func (c *copier) startPages(ctx context.Context, db int, names *nameQueue, least int) {
	for page := names.page(least); page != nil; page = names.page(least) {
		select {
		case c.pageSlots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c.pages.Go(func() {
			defer func() { <-c.pageSlots }()
			if err := contained.Run(func() error { return c.copyPage(ctx, db, page) }); err != nil {
				c.fail(err)
			}
		})
	}
}

// copyPage makes passes over some keys until none is open. The first pass only reads, the second
// one writes, and the third one checks the result.
func (c *copier) copyPage(ctx context.Context, db int, names []string) error {
	var k *keysCopy
	var failed error
	for n := range maxPasses {
		if n > 1 && pacing.Sleep(ctx, passPause) != nil {
			break
		}
		if n == blockAfter {
			c.blockOpen(k)
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

// blockOpen writes undecided copies for the open keys, and logs some of the keys. While a proxy of
// an earlier version runs, the keys stay open: that version treats an undecided copy as a copy of a
// single incarnation.
func (c *copier) blockOpen(k *keysCopy) {
	if k == nil || c.set.hasEarlierPeer() {
		return
	}
	if open := k.Block(); len(open) > 0 {
		c.log.Warn(
			"the holders of some keys are undetermined: the keys are refused until their leases expire, or FORCEUNLOCK",
			"master", c.Name, "keys", len(open), "some", open[:min(maxNamedKeys, len(open))])
	}
}

// pass makes one pass over some keys. The first pass also raises the fence counters: they only
// grow.
func (c *copier) pass(
	ctx context.Context, db int, names []string, k *keysCopy,
) (next *keysCopy, settled bool, err error) {
	select {
	case c.askSlots <- struct{}{}:
		defer func() { <-c.askSlots }()
	case <-ctx.Done():
		return k, false, ctx.Err()
	}
	own, views, err := c.readViews(ctx, db, names)
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
		policy := copyPolicy{Masters: c.from.masters, Sources: len(views)}
		return newCopy(policy, c.stepped, c.from.member(c.Guard), own, views), false, nil
	}
	steps, settled := k.Pass(own, views)
	if err = c.fill(ctx, db, steps); err != nil {
		k.Failed(steps)
	}
	return k, settled && err == nil, err
}

// keepReservation renews the reservation of the catch-up, and stops the copier once another proxy
// has reserved it.
func (c *copier) keepReservation(ctx context.Context) {
	for pacing.Sleep(ctx, reserveTime/3) == nil {
		if err := contained.Run(func() error { return c.reserve(ctx, c.record, reserveTime) }); isFinal(err) {
			c.fail(errInterrupted)
		}
	}
}

// readViews reads some keys of the master itself, and of all sources, at the same time.
func (c *copier) readViews(ctx context.Context, db int, names []string) (own view, views []view, err error) {
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
		own, err = c.viewOf(p), c.checkClock(p)
	}
	errs[len(views)] = err
	wg.Wait()
	return own, views, errors.Join(errs...)
}

// checkClock returns an error if the master's clock does not fit, because the expiry of the copies
// is computed by that clock.
func (c *copier) checkClock(p page) error {
	c.Guard.mu.Lock()
	defer c.Guard.mu.Unlock()
	if p.sighting.IsZero() || !c.observeClock(p.sighting) {
		return errOvertaken
	}
	return nil
}

// read reads some keys together with the marker, which shows that the source votes and has lost no
// data.
func (s source) read(ctx context.Context, db int, names []string) (view, error) {
	floor := s.guard.knownSeq(marker.InDatabase(s.trust.Nonce, db))
	p, err := readValues(ctx, s.guard.Conn, db, marker.InDatabase(s.trust.Nonce, db), names)
	switch {
	case err != nil && !s.guard.IsDown() && s.guard.trusted().term == s.trust.term:
		return nil, err
	case err != nil, !s.stillVoted(p, db, floor):
		return nil, errors.Join(errSourceLost, err)
	}
	return s.guard.viewOf(p), nil
}

// viewOf returns the cells of a page, with their expiry by our clock.
func (g *Guard) viewOf(p page) view {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make(view, len(p.values))
	for name, e := range p.values {
		h := heldCell{Cell: cell.Parse(e.value)}
		if h.Form == cell.Mark {
			continue // marks of waiters are not copied
		}
		if e.left >= 0 {
			h.Ends = g.clock.Latest(p.sighting.ServerTime + e.left)
		}
		all[name] = h
	}
	return all
}

// stillVoted reports whether the source still voted when it returned the page.
func (s source) stillVoted(p page, db int, floor int64) bool {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	seen := &look{
		db: db, field: marker.InDatabase(s.trust.Nonce, db), floor: floor, sequence: p.sequence, number: true,
		sighting: p.sighting,
	}
	return s.guard.voteCounts(s.trust, seen) && p.marker == marker.InDatabase(s.trust.String(), db)
}

// fill runs the steps, with the expiry by the master's clock.
func (c *copier) fill(ctx context.Context, db int, steps []copyStep) error {
	for len(steps) > 0 {
		args, now := []any{c.record, db}, steps[:min(fillSize, len(steps))]
		for _, s := range now {
			args = append(args, s.Key, string(s.Act), s.Held.String(), c.endOf(s.Held))
		}
		if err := c.runReserved(ctx, script.Fill, args...); err != nil {
			return err
		}
		steps = steps[len(now):]
	}
	return nil
}

// endOf returns when the cell expires by the master's clock, in whole milliseconds, rounded up; -1
// for never.
func (g *Guard) endOf(h heldCell) string {
	if h.Ends.IsZero() {
		return "-1"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return strconv.FormatInt((g.clock.ServerTime(h.Ends) + time.Millisecond - 1).Milliseconds(), 10)
}

var (
	errReserved    = errors.New("another proxy is doing this catch-up")
	errInterrupted = errors.New("another proxy took over the catch-up, or began a new quarantine")
	errSourceLost  = errors.New("a source of the catch-up does not vote any more")
	errOvertaken   = errors.New("the quarantine has ended, or was replaced")

	errUnsettledKeys = errors.New("the holders of some keys keep changing on the other masters")
)
