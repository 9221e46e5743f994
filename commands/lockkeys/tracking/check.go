package tracking

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"redlock-proxy/quorum"
)

const (
	// settleTime is how long a check waits after too few masters have reported a change.
	settleTime = 10 * time.Millisecond
	// maxSettleTime limits settleTime, which doubles while a key changes again and again. It starts
	// over if the key has not changed for resetAfter.
	maxSettleTime, resetAfter = time.Second, 2 * time.Second
	// expirySlack is how long after its expiry a key is checked, because it expires a little later
	// on some masters.
	expirySlack = 5 * time.Millisecond
	// armTimeout limits how long a check waits until marks are armed.
	armTimeout = 250 * time.Millisecond
	// unwatchedPause is the time between two reports of keys that cannot be watched.
	unwatchedPause = 100 * time.Millisecond
	// maxChecked limits the keys that are checked together. maxPostponed limits how often a
	// client's own commands postpone a check.
	maxChecked, maxPostponed = 128, 3
)

// run works in the Client's goroutine until no work is left. After a panic, which is a bug, the
// client is notified that everything may have changed.
func (c *Client) run() {
	defer func() {
		if problem := recover(); problem != nil {
			c.hub.opts.Logger.Error("tracking failed", "panic", problem, "stack", string(debug.Stack()))
			c.forgetAll()
			c.mu.Lock()
			c.running = false
			c.mu.Unlock()
			c.push(c.ctx, nil)
		}
	}()
	for {
		due, checks, at, goes := c.next(time.Now())
		switch {
		case !goes:
			return
		case c.takeReportAll():
			c.push(c.ctx, nil)
		case len(due) > 0:
			c.push(c.ctx, due)
		case len(checks) > 0:
			c.check(checks)
		default:
			c.waitForWork(at)
		}
	}
}

// next returns the next work, or the time at which there will be work.
func (c *Client) next(now time.Time) (due []string, checks []*entry, at time.Time, goes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reportAll {
		return nil, nil, at, !c.closed
	}
	due = slices.Collect(maps.Keys(c.toReport))
	clear(c.toReport)
	for e := range c.pending {
		switch {
		case len(due) > 0 || len(checks) == maxChecked:
		case c.inUse[e.id] > 0: // the end of the command wakes this goroutine
		case !e.due.After(now):
			checks = append(checks, e)
		case at.IsZero() || e.due.Before(at):
			at = e.due
		}
	}
	c.running = !c.closed && len(due)+len(c.pending) > 0
	return due, checks, at, c.running
}

func (c *Client) takeReportAll() (is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is, c.reportAll = c.reportAll, false
	return is
}

// waitForWork waits until there is work, or until a time, unless the time is zero.
func (c *Client) waitForWork(until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case <-c.ctx.Done():
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
	case <-c.wake:
	case <-due:
	}
}

// check marks keys again, and checks whether they still have the state that the client saw.
func (c *Client) check(all []*entry) {
	marks := c.mark(all)
	if !c.awaitArmed(marks) {
		return
	}
	places := make([]quorum.Key, len(all))
	for i, e := range all {
		places[i] = e.place
	}
	seen, err := c.hub.opts.Read(c.ctx, places)
	now := time.Now()
	// Watched must be called before mu is locked: a mark that reports a change waits for mu. If a
	// watch ends later, the mark reports that.
	watched := make([]bool, len(all))
	for i, m := range marks {
		watched[i] = m.Watched()
	}
	c.mu.Lock()
	var stale []Watch
	for i, e := range all {
		switch {
		case e.forgotten:
		case c.inUse[e.id] > 0 && e.postponed < maxPostponed:
			e.postponed++
			e.due, c.pending[e] = now, true
		case err != nil || !watched[i]:
			stale = append(stale, c.unwatched(e, now))
		case !e.was.same(stateIn(seen[i], now)):
			stale = append(stale, c.report(e))
		default:
			e.postponed = 0
			e.awaitExpiry(stateIn(seen[i], now), now)
		}
	}
	c.mu.Unlock()
	stop(stale...)
}

// awaitExpiry schedules a check of an entry when its key expires. Masters report the expiry late,
// and not at all for a key that shares its cell. mu is held.
func (e *entry) awaitExpiry(s state, now time.Time) {
	switch left := s.end.Sub(now) + expirySlack; {
	case !s.timed || s.endless:
	case e.expiryTimer == nil:
		e.expiryTimer = time.AfterFunc(left, e.expired)
	default:
		e.expiryTimer.Reset(left)
	}
}

// expired schedules a check of an entry now.
func (e *entry) expired() {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.forgotten {
		e.due, c.pending[e] = time.Now(), true
		c.wakeUp()
	}
}

// awaitArmed waits until marks are armed, up to armTimeout, and reports whether the Client is still
// open.
func (c *Client) awaitArmed(marks []Watch) bool {
	patience := time.After(armTimeout)
	for _, m := range marks {
		select {
		case <-m.Settled():
		case <-patience:
			return true
		case <-c.ctx.Done():
			return false
		}
	}
	return true
}

// mark replaces the marks of entries.
func (c *Client) mark(all []*entry) []Watch {
	marks, before := make([]Watch, len(all)), make([]Watch, len(all))
	for i, e := range all {
		c.mu.Lock()
		delete(c.pending, e)
		e.due = time.Time{}
		e.round++
		round := e.round
		c.mu.Unlock()
		m := c.hub.opts.Mark(e.place, func(n quorum.Report) { c.onReport(e, round, n) })
		c.mu.Lock()
		if before[i] = e.mark; e.forgotten {
			before[i] = m // nothing else would stop it
		} else {
			e.mark = m
		}
		c.mu.Unlock()
		marks[i] = m
	}
	stop(before...)
	return marks
}

// unwatched reports a key that cannot be watched, or schedules a check if such a key was reported a
// moment ago. It returns a mark to stop. mu is held.
func (c *Client) unwatched(e *entry, now time.Time) Watch {
	if earliest := c.lastUnwatched.Add(unwatchedPause); now.Before(earliest) && !c.lastUnwatched.Equal(now) {
		e.due, c.pending[e] = earliest, true
		return nil
	}
	c.lastUnwatched = now
	return c.report(e)
}

// onReport schedules a check after a report of a mark. It does not block.
func (c *Client) onReport(e *entry, round int, n quorum.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.forgotten || e.round != round {
		return
	}
	now := time.Now()
	due := now
	if n == quorum.SomeChanged {
		due = now.Add(e.pause(now))
	}
	if e.due.IsZero() || due.Before(e.due) {
		e.due, c.pending[e] = due, true
		c.wakeUp()
	}
}

// pause returns how long to wait after a change that few masters have reported.
func (e *entry) pause(now time.Time) time.Duration {
	if e.recentChecks++; now.Sub(e.checked) > resetAfter {
		e.recentChecks = 0
	}
	e.checked = now
	return min(settleTime<<min(e.recentChecks, 10), maxSettleTime)
}
