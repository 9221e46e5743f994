package tracking

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/quorum"
)

// Client holds the keys that one client tracks. Only the goroutine that runs the client's commands
// may call Mode, SetMode, Stop, Begin, RequestCaching, CachingRequested and ClearCaching.
type Client struct {
	hub    *Hub
	push   func(ctx context.Context, keys []string)
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mode Mode
	// caching is true if the client has sent CLIENT CACHING for the next command.
	caching bool

	mu             sync.Mutex
	entries        map[dbKey]*entry
	keyBytes       atomic.Int64
	pendingEntries map[*entry]bool // entries to check, now or later
	unreportedKeys map[string]bool // keys to report, counted in keyBytes until push returns
	keysInUse      map[dbKey]int   // keys in use by the client's own commands
	// lastUnwatchedReport is the time of the last report of a key that the Client cannot watch.
	lastUnwatchedReport time.Time
	// reportAll requests the report that everything may have changed.
	reportAll  bool
	running    bool
	closed     bool
	wakeSignal chan struct{}
}

// NewClient returns the Client of a new client. It can notify the client until Close, also while
// the client is idle. push notifies the client of keys; nil means all keys. push runs in a
// goroutine of the Client, and returns when its ctx ends.
func (h *Hub) NewClient(push func(ctx context.Context, keys []string)) *Client {
	c := &Client{
		hub: h, push: push, entries: map[dbKey]*entry{}, pendingEntries: map[*entry]bool{}, unreportedKeys: map[string]bool{},
		keysInUse: map[dbKey]int{}, wakeSignal: make(chan struct{}, 1),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Of returns the Client of a client of the proxy, or nil if this client never used CLIENT TRACKING.
func Of(client *command.Client) *Client {
	c, _ := client.Tracking.(*Client)
	return c
}

// Mode returns the mode of the last CLIENT TRACKING. The mode of a nil Client is off.
func (c *Client) Mode() Mode {
	if c == nil {
		return Mode{}
	}
	return c.mode
}

// SetMode implements CLIENT TRACKING. It forgets the keys if the mode is off.
func (c *Client) SetMode(m Mode) {
	c.mode, c.caching = m, false
	c.hub.setTracking(c, m.On && !m.Redirected)
	if !m.On {
		c.forgetAll()
	}
}

// Stop implements CLIENT TRACKING off.
func (c *Client) Stop() { c.SetMode(Mode{}) }

// RequestCaching implements CLIENT CACHING, for the next command.
func (c *Client) RequestCaching() { c.caching = true }

// entrySize is the memory of a remembered key in addition to its name, in bytes.
const entrySize = 512

// sizeOf returns the memory of a remembered key, or of a key to report.
func sizeOf(key string) int64 { return entrySize + int64(len(key)) }

// Size returns the bytes of the remembered keys, and of the keys to report. It returns 0 for a nil
// Client.
func (c *Client) Size() int {
	if c == nil {
		return 0
	}
	return int(c.keyBytes.Load())
}

// CachingRequested reports whether the client sent CLIENT CACHING for the next command.
func (c *Client) CachingRequested() bool { return c != nil && c.caching }

// ClearCaching ends the effect of CLIENT CACHING. The proxy calls it after each command other than
// CLIENT.
func (c *Client) ClearCaching() {
	if c != nil {
		c.caching = false
	}
}

// Close forgets all keys, and waits until the last report has ended.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.hub.setTracking(c, false)
	c.cancel()
	c.forgetAll()
	c.tasks.Wait()
	c.forgetAll() // a task may have added entries meanwhile
}

func (c *Client) forgetAll() {
	c.mu.Lock()
	var marks []Mark
	for _, e := range c.entries {
		marks = append(marks, c.forget(e))
	}
	for key := range c.unreportedKeys {
		c.keyBytes.Add(-sizeOf(key))
	}
	clear(c.unreportedKeys)
	c.mu.Unlock()
	stop(marks...)
}

// stop stops marks. The caller must not hold mu, because a mark that reports a change waits for mu.
func stop(marks ...Mark) {
	for _, m := range marks {
		if m != nil {
			m.Stop()
		}
	}
}

// forget removes an entry, and returns its mark. The caller holds mu, and must release mu before it
// stops the mark.
func (c *Client) forget(e *entry) Mark {
	if e.forgotten {
		return nil
	}
	e.forgotten = true
	if e.expiryTimer != nil {
		e.expiryTimer.Stop()
	}
	delete(c.entries, e.dbKey)
	c.keyBytes.Add(-sizeOf(e.key))
	delete(c.pendingEntries, e)
	if c.running {
		c.wakeUp() // the goroutine may be waiting for this entry
	}
	return e.mark
}

// forgetAndReport forgets an entry, and schedules a report of its key. The caller holds mu, and
// must release mu before it stops the returned mark.
func (c *Client) forgetAndReport(e *entry) Mark {
	c.reportKey(e.key)
	c.wakeUp()
	return c.forget(e)
}

// reportKey schedules a report of a key. The caller holds mu.
func (c *Client) reportKey(key string) {
	if !c.unreportedKeys[key] {
		c.unreportedKeys[key] = true
		c.keyBytes.Add(sizeOf(key))
	}
}

// forgetReported subtracts keys from keyBytes after push has notified the client of them.
func (c *Client) forgetReported(keys []string) {
	for _, key := range keys {
		c.keyBytes.Add(-sizeOf(key))
	}
}

// invalidateAll forgets all keys, and schedules the report that everything may have changed.
func (c *Client) invalidateAll() {
	c.forgetAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reportAll = true
	c.wakeUp()
}

// wakeUp lets the Client's goroutine check for work. The caller holds mu.
func (c *Client) wakeUp() {
	switch {
	case c.closed:
	case !c.running:
		c.running = true
		c.tasks.Go(c.run)
	default:
		select {
		case c.wakeSignal <- struct{}{}:
		default:
		}
	}
}

// CommandRun holds one command of the client on lock keys.
type CommandRun struct {
	client       *Client
	remembers    bool
	noLoop       bool
	ids          []dbKey
	db           int
	keyOnMasters func(key string) quorum.Key
}

// Begin begins a command on keys of a database. It returns nil if the client does not track keys.
func (c *Client) Begin(db int, keys []string, keyOnMasters func(key string) quorum.Key) *CommandRun {
	if c == nil || !c.mode.On {
		return nil
	}
	t := &CommandRun{client: c, remembers: c.mode.remembers(c.caching), noLoop: c.mode.NoLoop, db: db, keyOnMasters: keyOnMasters}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		t.ids = append(t.ids, dbKey{db, key})
		c.keysInUse[dbKey{db, key}]++
	}
	return t
}

// Remembers reports whether the Client must remember the keys that the command reads.
func (t *CommandRun) Remembers() bool { return t != nil && t.remembers }

// Fail ends a command that failed with an unknown outcome. The proxy calls it after the reply. The
// values of the command's keys are then unknown, and the command may change them later. So the
// Client notifies its client as soon as it can read the keys again, and until then from time to
// time. Otherwise the client might wait for a notification that never comes.
func (t *CommandRun) Fail(now time.Time) {
	if t == nil {
		return
	}
	if t.remembers {
		t.client.mu.Lock()
		var marks []Mark
		for _, keyID := range t.ids {
			marks = append(marks, t.noteRead(keyID.key, state{unknown: true}, keyspace.Edit{}, false, now)...)
		}
		t.client.mu.Unlock()
		stop(marks...)
	}
	t.End(nil, nil, now)
}

// End ends a command. The proxy calls it after the reply, with the keys that the command had read
// and changed at the time now. readEntries and edits may be nil.
func (t *CommandRun) End(readEntries map[string]keyspace.Entry, edits []keyspace.Edit, now time.Time) {
	if t == nil {
		return
	}
	c := t.client
	c.mu.Lock()
	changes := map[string]keyspace.Edit{}
	var marks []Mark
	for _, e := range edits {
		if !e.IsChange() {
			continue
		}
		changes[e.Key] = e
		if _, isRead := readEntries[e.Key]; !isRead || !t.remembers {
			marks = append(marks, t.noteChange(e, now))
		}
	}
	if t.remembers {
		for key, entry := range readEntries {
			edit, isChanged := changes[key]
			marks = append(marks, t.noteRead(key, stateOf(entry, now), edit, isChanged, now)...)
		}
	}
	for _, keyID := range t.ids {
		if c.keysInUse[keyID]--; c.keysInUse[keyID] == 0 {
			delete(c.keysInUse, keyID)
		}
	}
	if len(c.pendingEntries) > 0 {
		c.wakeUp()
	}
	c.mu.Unlock()
	stop(marks...)
}

// noteChange handles a key that the client itself has changed. The caller holds mu, and must
// release mu before it stops the returned mark.
func (t *CommandRun) noteChange(edit keyspace.Edit, now time.Time) Mark {
	e := t.client.entries[dbKey{t.db, edit.Key}]
	switch {
	case e == nil:
		return nil
	case t.noLoop && e.seenState.equals(stateOf(edit.Before, now)):
		return t.client.forget(e)
	}
	return t.client.forgetAndReport(e)
}

// noteRead remembers a key. If the Client already remembers the key, noteRead reports the key if
// its state had changed before this command. If a script changes and reads a key, its reply shows
// the change. noteRead then reports this change only if the value changed. The caller holds mu, and
// must release mu before it stops the returned marks.
func (t *CommandRun) noteRead(
	key string, current state, edit keyspace.Edit, isChanged bool, now time.Time,
) (marks []Mark) {
	c, keyID := t.client, dbKey{t.db, key}
	if c.closed {
		return nil
	}
	if old := c.entries[keyID]; old != nil {
		before := current
		if isChanged {
			before = stateOf(edit.Before, now)
		}
		if !current.unknown && (!old.seenState.equals(before) ||
			isChanged && !t.noLoop && !old.seenState.equalsInValue(current)) {
			c.reportKey(key)
		}
		marks = append(marks, c.forget(old))
	}
	e := &entry{dbKey: keyID, client: c, keyOnMasters: t.keyOnMasters(key), seenState: current, dueTime: now}
	c.entries[keyID], c.pendingEntries[e] = e, true
	c.keyBytes.Add(sizeOf(key))
	c.wakeUp()
	return marks
}
