package tracking

import (
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"redlock-proxy/quorum"
)

const (
	// calm is how long is waited after a change that too few masters have reported, for the others.
	calm = 10 * time.Millisecond
	// longestCalm is that for a key that changes again and again, calmAfter when it is new again.
	longestCalm, calmAfter = time.Second, 2 * time.Second
	// afterEnd is how long after its end a key is looked at: it ends a little later on some
	// masters.
	afterEnd = 5 * time.Millisecond
	// armTime is how long is waited for marks to be armed.
	armTime = 250 * time.Millisecond
	// blindPause is between two times that keys are reported because they cannot be watched.
	blindPause = 100 * time.Millisecond
	// maxChecked bounds the keys that are checked together, maxPostponed how often the client's own
	// commands have a check be made again.
	maxChecked, maxPostponed = 128, 3
)

// run is the Client's goroutine, as long as there is something to do. After a panic, which is a
// mistake in the program, the client is notified that everything may have changed.
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
		case c.takeAll():
			c.push(c.ctx, nil)
		case len(due) > 0:
			c.push(c.ctx, due)
		case len(checks) > 0:
			c.check(checks)
		default:
			c.rest(at)
		}
	}
}

// next is what is to be done next, or when.
func (c *Client) next(now time.Time) (due []string, checks []*entry, at time.Time, goes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all {
		return nil, nil, at, !c.closed
	}
	due = slices.Collect(maps.Keys(c.lost))
	clear(c.lost)
	for e := range c.stirred {
		switch {
		case len(due) > 0 || len(checks) == maxChecked:
		case c.busy[e.id] > 0: // its end kicks
		case !e.due.After(now):
			checks = append(checks, e)
		case at.IsZero() || e.due.Before(at):
			at = e.due
		}
	}
	c.running = !c.closed && len(due)+len(c.stirred) > 0
	return due, checks, at, c.running
}

// takeAll reports whether everything is to be reported, once.
func (c *Client) takeAll() (is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is, c.all = c.all, false
	return is
}

// rest waits until then, or for ever where that is zero, or until there is something to do.
func (c *Client) rest(until time.Time) {
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

// check marks keys anew, and looks whether they still hold what was reported to the client.
func (c *Client) check(all []*entry) {
	marks := c.mark(all)
	if !c.settled(marks) {
		return
	}
	places := make([]quorum.Key, len(all))
	for i, e := range all {
		places[i] = e.place
	}
	seen, err := c.hub.opts.Read(c.ctx, places)
	now := time.Now()
	// Before mu is taken: a mark that has news waits for mu. What ends after this comes as news.
	watched := make([]bool, len(all))
	for i, m := range marks {
		watched[i] = m.Watched()
	}
	c.mu.Lock()
	var ended []Mark
	for i, e := range all {
		switch {
		case e.gone:
		case c.busy[e.id] > 0 && e.postponed < maxPostponed:
			e.postponed++
			e.due, c.stirred[e] = now, true
		case err != nil || !watched[i]:
			ended = append(ended, c.unwatched(e, now))
		case !e.was.is(stateIn(seen[i], now)):
			ended = append(ended, c.lose(e))
		default:
			e.postponed = 0
			e.awaitEnd(stateIn(seen[i], now), now)
		}
	}
	c.mu.Unlock()
	stop(ended...)
}

// awaitEnd has an entry be checked when what it holds ends by itself: masters report that late, and
// not at all of one key of a cell with others. It is called with mu held.
func (e *entry) awaitEnd(s state, now time.Time) {
	switch left := s.end.Sub(now) + afterEnd; {
	case !s.timed || s.endless:
	case e.ends == nil:
		e.ends = time.AfterFunc(left, e.ended)
	default:
		e.ends.Reset(left)
	}
}

// ended has an entry be checked now.
func (e *entry) ended() {
	c := e.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.gone {
		e.due, c.stirred[e] = time.Now(), true
		c.kick()
	}
}

// settled waits until marks are armed, but not for long, and reports whether the Client goes on.
func (c *Client) settled(marks []Mark) bool {
	patience := time.After(armTime)
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

// mark sets new marks in the place of those of before.
func (c *Client) mark(all []*entry) []Mark {
	marks, before := make([]Mark, len(all)), make([]Mark, len(all))
	for i, e := range all {
		c.mu.Lock()
		delete(c.stirred, e)
		e.due = time.Time{}
		e.round++
		round := e.round
		c.mu.Unlock()
		m := c.hub.opts.Mark(e.place, func(n quorum.News) { c.news(e, round, n) })
		c.mu.Lock()
		if before[i] = e.mark; e.gone {
			before[i] = m // nobody else would stop it
		} else {
			e.mark = m
		}
		c.mu.Unlock()
		marks[i] = m
	}
	stop(before...)
	return marks
}

// unwatched is for a key that cannot be watched: it is due, or looked at again soon where one was
// due a moment ago.
func (c *Client) unwatched(e *entry, now time.Time) Mark {
	if again := c.blind.Add(blindPause); now.Before(again) && !c.blind.Equal(now) {
		e.due, c.stirred[e] = again, true
		return nil
	}
	c.blind = now
	return c.lose(e)
}

// news is called by a mark. It does not wait.
func (c *Client) news(e *entry, round int, n quorum.News) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.gone || e.round != round {
		return
	}
	now := time.Now()
	due := now
	if n == quorum.Stirred {
		due = now.Add(e.pause(now))
	}
	if e.due.IsZero() || due.Before(e.due) {
		e.due, c.stirred[e] = due, true
		c.kick()
	}
}

// pause is how long is waited after a change that few masters have reported.
func (e *entry) pause(now time.Time) time.Duration {
	if e.hurried++; now.Sub(e.checked) > calmAfter {
		e.hurried = 0
	}
	e.checked = now
	return min(calm<<min(e.hurried, 10), longestCalm)
}
