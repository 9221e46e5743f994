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
	// passPause is the wait before each pass over some keys, except the first two passes. It gives
	// proxies time to undo an attempt before the next pass.
	passPause = 100 * time.Millisecond
	// maxPasses limits the passes over a page. After passesBeforeBlocking passes, keys with several
	// possible incarnations get undecided copies.
	maxPasses, passesBeforeBlocking = 20, 5
	// maxNamedKeys limits the number of keys that are logged.
	maxNamedKeys = 5
	// maxPages limits the pages in progress. maxRequestingPages limits the pages that send requests
	// to masters at a time.
	maxPages, maxRequestingPages = 32, 3
	// fillSize limits the number of keys that one script writes.
	fillSize = 250
)

// copier copies the sources' keys to a master that has lost data, or that joins another era. It
// lists the names of the keys on all sources and on the master itself, and copies the keys in
// pages. So the copier's memory does not grow with the number of keys, except for a fingerprint of
// each name.
type copier struct {
	*Guard
	record       string
	clockStepped bool
	// intact is set if the master has lost nothing since it voted in an earlier era.
	intact  bool
	sources sourceSet
	// fail stops all pages.
	fail                    context.CancelCauseFunc
	pages                   sync.WaitGroup
	pageSlots, requestSlots chan struct{}
	keys                    atomic.Int64
}

// copyFrom copies these databases, and returns the number of copied keys.
func (g *Guard) copyFrom(ctx context.Context, v Report, sources sourceSet, dbs []int) (int64, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c := &copier{
		Guard: g, record: v.Record.Text, clockStepped: v.Record.Value.Reason == string(ClockStepped), sources: sources, fail: fail,
		intact:    v.Record.Value.Reason == string(Joining),
		pageSlots: make(chan struct{}, maxPages), requestSlots: make(chan struct{}, maxRequestingPages),
	}
	var renewal sync.WaitGroup
	renewal.Go(func() { c.renewReservation(ctx) })
	for _, db := range dbs {
		if err := c.copyDatabase(ctx, db); err != nil {
			fail(err)
			break
		}
	}
	c.pages.Wait()
	err := context.Cause(ctx)
	fail(nil)
	renewal.Wait()
	return c.keys.Load(), err
}

// copyDatabase copies a database in pages; each name is in exactly one page. All masters list their
// keys at the same time. A source lists every key that it holds throughout the listing. The proxy
// checks afterwards that the source has lost no data meanwhile.
func (c *copier) copyDatabase(ctx context.Context, db int) error {
	names, errs := newNameQueue(), make([]error, len(c.sources.sources)+1)
	var wg sync.WaitGroup
	read := func(i int, read func() error) {
		wg.Go(func() {
			if errs[i] = contained.Run(read); errs[i] != nil {
				c.fail(errs[i])
			}
		})
	}
	for i, s := range c.sources.sources {
		read(i, func() error {
			if err := c.scan(ctx, s.guard.Conn, db, names, cell.FencePrefix); err != nil {
				return err
			}
			return retry(ctx, func() error { _, err := s.read(ctx, db, nil); return err })
		})
	}
	read(len(c.sources.sources), func() error { return c.scan(ctx, c.Conn, db, names) })
	wg.Wait()
	c.startPages(ctx, db, names, 1)
	return errors.Join(errs...)
}

// scan lists the names of a master's keys, and starts a page whenever pageSize new names are
// pending.
func (c *copier) scan(ctx context.Context, w Conn, db int, names *nameQueue, ownPrefixes ...any) error {
	for cursor, first := "0", true; (first || cursor != "0") && ctx.Err() == nil; first = false {
		err := retry(ctx, func() error {
			found, next, err := readNames(ctx, w, db, cursor, ownPrefixes...)
			if err == nil {
				cursor = next
				names.add(found)
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

// retry repeats a failed request after a pause, because a master may have replied too late.
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
	seeds        [2]maphash.Seed
	mu           sync.Mutex
	addedHashes  map[[2]uint64]struct{}
	pendingNames []string
}

func newNameQueue() *nameQueue {
	return &nameQueue{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, addedHashes: map[[2]uint64]struct{}{}}
}

func (n *nameQueue) add(listedNames []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range listedNames {
		fingerprint := [2]uint64{maphash.String(n.seeds[0], name), maphash.String(n.seeds[1], name)}
		if _, known := n.addedHashes[fingerprint]; !known {
			n.addedHashes[fingerprint] = struct{}{}
			n.pendingNames = append(n.pendingNames, name)
		}
	}
}

// takePage takes up to pageSize names, or none if there are fewer than minNames.
func (n *nameQueue) takePage(minNames int) (page []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pendingNames) < minNames {
		return nil
	}
	size := min(pageSize, len(n.pendingNames))
	page, n.pendingNames = n.pendingNames[:size:size], n.pendingNames[size:]
	return page
}

// startPages starts pages while at least minNames names are pending. Each page waits for a free
// slot.
func (c *copier) startPages(ctx context.Context, db int, names *nameQueue, minNames int) {
	for page := names.takePage(minNames); page != nil; page = names.takePage(minNames) {
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

// copyPage makes passes over some keys until all are settled. The first pass reads the keys, the
// second pass writes them, and the third pass checks the result.
func (c *copier) copyPage(ctx context.Context, db int, names []string) error {
	var k *keysCopy
	var lastErr error
	for n := range maxPasses {
		if n > 1 && pacing.Sleep(ctx, passPause) != nil {
			break
		}
		if n == passesBeforeBlocking {
			c.blockOpenKeys(k)
		}
		next, settled, err := c.runPass(ctx, db, names, k)
		switch k = next; {
		case isFinal(err), ctx.Err() != nil:
			return err
		case settled:
			c.keys.Add(int64(len(k.writtenCells)))
			return nil
		}
		lastErr = err
	}
	if lastErr != nil || ctx.Err() != nil {
		return lastErr
	}
	return errors.New("the holders of some keys keep changing on the other masters")
}

// blockOpenKeys lets the next passes write undecided copies for the open keys, and logs some of the
// keys. While a proxy of an earlier version runs, the keys stay open: that version treats an
// undecided copy as a copy of a single incarnation.
func (c *copier) blockOpenKeys(k *keysCopy) {
	if k == nil || c.set.HasEarlierProxy() {
		return
	}
	if keys := k.BlockOpenKeys(); len(keys) > 0 {
		c.log.Warn(
			"the holders of some keys are undetermined: commands on these keys fail until the leases expire; "+
				"to free a key earlier, FORCEUNLOCK it",
			"master", c.Name, "keys", len(keys), "some", keys[:min(maxNamedKeys, len(keys))])
	}
}

// runPass makes one pass over some keys. The first pass also raises the fence counters. One pass
// suffices for them, because they only grow.
func (c *copier) runPass(
	ctx context.Context, db int, names []string, k *keysCopy,
) (next *keysCopy, settled bool, err error) {
	select {
	case c.requestSlots <- struct{}{}:
		defer func() { <-c.requestSlots }()
	case <-ctx.Done():
		return k, false, ctx.Err()
	}
	ownCells, views, err := c.readViews(ctx, db, names)
	switch {
	case err != nil:
		return k, false, err
	case k == nil:
		steps, ahead := fenceSteps(views, c.set.Clock(time.Now()))
		for i, key := range ahead {
			c.set.WarnFenceAhead(c.sources.sources[i].guard.Name, strings.TrimPrefix(key, cell.FencePrefix))
		}
		if err := c.fill(ctx, db, steps); err != nil {
			return nil, false, err
		}
		policy := copyPolicy{
			Masters: c.sources.masters, Sources: len(views), FormerMasters: c.sources.formerMasters, Intact: c.intact,
		}
		return newKeysCopy(policy, c.clockStepped, c.sources.indexOf(c.Guard), ownCells, views), false, nil
	}
	steps, settled := k.RunPass(ownCells, views)
	if err = c.fill(ctx, db, steps); err != nil {
		k.RecordFailure(steps)
	}
	return k, settled && err == nil, err
}

// renewReservation renews the reservation of the catch-up, and stops the copier once another proxy
// has taken the reservation, or the record has changed.
func (c *copier) renewReservation(ctx context.Context) {
	for pacing.Sleep(ctx, reservationTime/3) == nil {
		if err := contained.Run(func() error { return c.reserveCatchUp(ctx, c.record, reservationTime) }); isFinal(err) {
			c.fail(err)
		}
	}
}

// readViews reads some keys of the master itself, and of all sources, at the same time.
func (c *copier) readViews(ctx context.Context, db int, names []string) (ownCells view, views []view, err error) {
	views, errs := make([]view, len(c.sources.sources)), make([]error, len(c.sources.sources)+1)
	var wg sync.WaitGroup
	for i, s := range c.sources.sources {
		wg.Go(func() {
			errs[i] = contained.Run(func() (err error) {
				views[i], err = s.read(ctx, db, names)
				return err
			})
		})
	}
	p, err := readValues(ctx, c.Conn, db, marker.NoClaim, names)
	if err == nil {
		ownCells, err = c.viewOf(p), c.checkClock(p)
	}
	errs[len(views)] = err
	wg.Wait()
	return ownCells, views, errors.Join(errs...)
}

// checkClock returns an error if the master's clock does not fit, because the expiry of the copies
// is computed by that clock.
func (c *copier) checkClock(p page) error {
	c.Guard.mu.Lock()
	defer c.Guard.mu.Unlock()
	if p.clockReading.IsZero() || !c.observeClock(p.clockReading) {
		return errOvertaken
	}
	return nil
}

// read reads some keys together with the marker, which shows that the source votes and has lost no
// data.
func (s source) read(ctx context.Context, db int, names []string) (view, error) {
	field := marker.AppendDatabase(s.trust.Nonce, db)
	floor, _ := s.guard.knownState(field, db)
	p, err := readValues(ctx, s.guard.Conn, db, field, names)
	switch {
	case err != nil && !s.guard.IsDown() && s.guard.currentTrust().term == s.trust.term:
		return nil, err
	case err != nil, !s.stillVoted(p, db, floor):
		return nil, errors.Join(errSourceLost, err)
	}
	return s.guard.viewOf(p), nil
}

// viewOf returns the cells of a page, with their expiry by this machine's clock.
func (g *Guard) viewOf(p page) view {
	g.mu.Lock()
	defer g.mu.Unlock()
	cells := make(view, len(p.values))
	for name, e := range p.values {
		h := storedCell{Cell: cell.Parse(e.value)}
		if h.Form == cell.Mark {
			continue // a mark counts as absent
		}
		if e.timeLeft >= 0 {
			h.Expiry = g.clock.LatestLocalTime(p.clockReading.ServerTime + e.timeLeft)
		}
		cells[name] = h
	}
	return cells
}

// stillVoted reports whether the source still voted when it returned the page.
func (s source) stillVoted(p page, db int, floor int64) bool {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	reply := &probe{
		db: db, field: marker.AppendDatabase(s.trust.Nonce, db), floor: floor, sequence: p.sequence, hasSequence: true,
		clockReading: p.clockReading,
	}
	return s.guard.isVoteValid(s.trust, reply) && p.marker == marker.AppendDatabase(s.trust.String(), db)
}

// fill runs the steps, with the expiry by the master's clock.
func (c *copier) fill(ctx context.Context, db int, steps []copyStep) error {
	for len(steps) > 0 {
		args, chunk := []any{c.record, db}, steps[:min(fillSize, len(steps))]
		for _, s := range chunk {
			args = append(args, s.Key, string(s.Act), s.Cell.String(), c.formatExpiry(s.Cell))
		}
		if err := c.runReserved(ctx, script.Fill, args...); err != nil {
			return err
		}
		steps = steps[len(chunk):]
	}
	return nil
}

// formatExpiry returns the time at which the cell expires by the master's clock, in whole
// milliseconds, rounded up; -1 for never.
func (g *Guard) formatExpiry(h storedCell) string {
	if h.Expiry.IsZero() {
		return "-1"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return strconv.FormatInt((g.clock.LatestServerTime(h.Expiry) + time.Millisecond - 1).Milliseconds(), 10)
}

var (
	errReserved   = errors.New("another proxy is doing this catch-up")
	errSourceLost = errors.New("a source of the catch-up does not vote any more")
	errOvertaken  = errors.New("the quarantine has ended, or was replaced")
)
