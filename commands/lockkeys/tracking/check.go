package tracking

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"redlock-proxy/quorum"
)

const (
	// settleTime is the time that a check waits after a report that the key has changed on
	// only some masters.
	settleTime = 10 * time.Millisecond
	// maxSettleTime limits this wait, which doubles while a key changes again and again. The wait
	// returns to settleTime if the key has not changed for resetAfter.
	maxSettleTime, resetAfter = time.Second, 2 * time.Second
	// expirySlack is the time between the expiry of a key and its check, because the key expires a
	// little later on some masters.
	expirySlack = 5 * time.Millisecond
	// armTimeout limits how long a check waits until marks are armed.
	armTimeout = 250 * time.Millisecond
	// unwatchedPause is the shortest time between two reports of keys that the Client cannot watch.
	unwatchedPause = 100 * time.Millisecond
	// maxKeysPerCheck limits the keys of one check. maxPostponements limits how often a client's
	// own commands postpone a check.
	maxKeysPerCheck, maxPostponements = 128, 3
)

// run works in the Client's goroutine until no work is left. After a panic, which is a bug, it
// notifies the client that everything may have changed.
func (c *Client) run() {
	defer func() {
		if recovered := recover(); recovered != nil {
			c.hub.opts.Logger.Error("internal error in tracking; report this line", "panic", recovered, "stack", string(debug.Stack()))
			c.forgetAll()
			c.mu.Lock()
			c.running = false
			c.mu.Unlock()
			c.push(c.ctx, nil)
		}
	}()
	for {
		keys, checks, nextDue, hasWork := c.next(time.Now())
		switch {
		case !hasWork:
			return
		case c.takeReportAll():
			c.push(c.ctx, nil)
			c.forgetReported(keys)
		case len(keys) > 0:
			c.push(c.ctx, keys)
			c.forgetReported(keys)
		case len(checks) > 0:
			c.check(checks)
		default:
			c.waitForWork(nextDue)
		}
	}
}

// next returns the next work, or the time of the next check.
func (c *Client) next(now time.Time) (keys []string, checks []*entry, nextDue time.Time, hasWork bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reportAll {
		return nil, nil, nextDue, !c.closed
	}
	keys = slices.Collect(maps.Keys(c.unreportedKeys))
	clear(c.unreportedKeys)
	for e := range c.pendingEntries {
		switch {
		case len(keys) > 0 || len(checks) == maxKeysPerCheck:
		case c.keysInUse[e.dbKey] > 0: // the end of the command wakes this goroutine
		case !e.dueTime.After(now):
			checks = append(checks, e)
		case nextDue.IsZero() || e.dueTime.Before(nextDue):
			nextDue = e.dueTime
		}
	}
	c.running = !c.closed && len(keys)+len(c.pendingEntries) > 0
	return keys, checks, nextDue, c.running
}

func (c *Client) takeReportAll() (requested bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	requested, c.reportAll = c.reportAll, false
	return requested
}

// waitForWork waits until there is work, or until deadline. A zero deadline means no deadline.
func (c *Client) waitForWork(deadline time.Time) {
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timeout = time.After(time.Until(deadline))
	}
	select {
	case <-c.ctx.Done():
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
	case <-c.wakeSignal:
	case <-timeout:
	}
}

// check marks keys again, and checks whether they still have the state that the client saw.
func (c *Client) check(entries []*entry) {
	marks := c.mark(entries)
	if !c.awaitArmed(marks) {
		return
	}
	keysOnMasters := make([]quorum.Key, len(entries))
	for i, e := range entries {
		keysOnMasters[i] = e.keyOnMasters
	}
	snapshots, err := c.hub.opts.Read(c.ctx, keysOnMasters)
	now := time.Now()
	// check must call IsWatched before it locks mu, because a mark that reports a change waits for
	// mu. If a watch ends later, the mark reports that.
	watched := make([]bool, len(entries))
	for i, m := range marks {
		watched[i] = m.IsWatched()
	}
	c.mu.Lock()
	var oldMarks []Mark
	for i, e := range entries {
		switch {
		case e.forgotten:
		case c.keysInUse[e.dbKey] > 0 && e.postponements < maxPostponements:
			e.postponements++
			e.dueTime, c.pendingEntries[e] = now, true
		case err != nil || !watched[i]:
			oldMarks = append(oldMarks, c.reportUnwatched(e, now))
		case !e.seenState.equals(stateOfSnapshot(snapshots[i], now)):
			oldMarks = append(oldMarks, c.forgetAndReport(e))
		default:
			e.postponements = 0
			e.awaitExpiry(stateOfSnapshot(snapshots[i], now), now)
		}
	}
	c.mu.Unlock()
	stop(oldMarks...)
}

// awaitExpiry schedules a check of an entry for the time at which its key expires. Masters report
// the expiry late, and not at all for a key that shares its cell. The caller holds mu.
func (e *entry) awaitExpiry(s state, now time.Time) {
	switch left := s.expiry.Sub(now) + expirySlack; {
	case !s.expiryKnown || s.neverExpires:
	case e.expiryTimer == nil:
		e.expiryTimer = time.AfterFunc(left, e.onExpiry)
	default:
		e.expiryTimer.Reset(left)
	}
}

// onExpiry schedules a check of an entry now.
func (e *entry) onExpiry() {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.forgotten {
		e.dueTime, c.pendingEntries[e] = time.Now(), true
		c.wakeUp()
	}
}

// awaitArmed waits until marks are armed, up to armTimeout, and reports whether the Client is still
// open.
func (c *Client) awaitArmed(marks []Mark) bool {
	timeout := time.After(armTimeout)
	for _, m := range marks {
		select {
		case <-m.Settled():
		case <-timeout:
			return true
		case <-c.ctx.Done():
			return false
		}
	}
	return true
}

// mark replaces the marks of entries.
func (c *Client) mark(entries []*entry) []Mark {
	marks, oldMarks := make([]Mark, len(entries)), make([]Mark, len(entries))
	for i, e := range entries {
		c.mu.Lock()
		delete(c.pendingEntries, e)
		e.dueTime = time.Time{}
		e.markID++
		id := e.markID
		c.mu.Unlock()
		m := c.hub.opts.Mark(e.keyOnMasters, func(n quorum.Report) { c.onReport(e, id, n) })
		c.mu.Lock()
		if oldMarks[i] = e.mark; e.forgotten {
			oldMarks[i] = m // nothing else would stop it
		} else {
			e.mark = m
		}
		c.mu.Unlock()
		marks[i] = m
	}
	stop(oldMarks...)
	return marks
}

// reportUnwatched reports a key that the Client cannot watch. If less than unwatchedPause has
// passed since the last such report, it schedules a check instead. The caller holds mu, and must
// release mu before it stops the returned mark.
func (c *Client) reportUnwatched(e *entry, now time.Time) Mark {
	earliest := c.lastUnwatchedReport.Add(unwatchedPause)
	if now.Before(earliest) && !c.lastUnwatchedReport.Equal(now) {
		e.dueTime, c.pendingEntries[e] = earliest, true
		return nil
	}
	c.lastUnwatchedReport = now
	return c.forgetAndReport(e)
}

// onReport schedules a check after a report of a mark. It does not block.
func (c *Client) onReport(e *entry, markID int, report quorum.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.forgotten || e.markID != markID {
		return
	}
	now := time.Now()
	due := now
	if report == quorum.ReportSomeChanged {
		due = now.Add(e.settleDelay(now))
	}
	if e.dueTime.IsZero() || due.Before(e.dueTime) {
		e.dueTime, c.pendingEntries[e] = due, true
		c.wakeUp()
	}
}

// settleDelay returns how long a check waits after a report that the key has changed on only some
// masters.
func (e *entry) settleDelay(now time.Time) time.Duration {
	if e.recentReports++; now.Sub(e.lastReport) > resetAfter {
		e.recentReports = 0
	}
	e.lastReport = now
	return min(settleTime<<min(e.recentReports, 10), maxSettleTime)
}
