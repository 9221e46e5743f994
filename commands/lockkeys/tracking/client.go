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

// Client is what one client tracks. Set, Caching, Mode and Begin are for the goroutine that runs
// its commands.
type Client struct {
	hub   *Hub
	push  func(ctx context.Context, keys []string)
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup

	mode Mode
	// said is set by a CLIENT CACHING, for the next command.
	said bool

	mu      sync.Mutex
	entries map[id]*entry
	kept    atomic.Int64    // bytes
	stirred map[*entry]bool // those that are due, now or later
	lost    map[string]bool // keys that are to be reported
	busy    map[id]int      // keys that commands of the client's own work with
	// blind is when a key was reported last because it cannot be watched.
	blind time.Time
	// all: everything is to be reported.
	all     bool
	running bool
	closed  bool
	wake    chan struct{}
}

// Client makes what a client tracks, until it is closed: also while the client rests between two
// commands. push tells it of keys, in a goroutine of the Client's, nil: of all that there are; it
// gives up when its ctx ends.
func (h *Hub) Client(push func(ctx context.Context, keys []string)) *Client {
	c := &Client{
		hub: h, push: push, entries: map[id]*entry{}, stirred: map[*entry]bool{}, lost: map[string]bool{}, busy: map[id]int{},
		wake: make(chan struct{}, 1),
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// Of is what a client of the proxy tracks, nil where it never asked for that.
func Of(client *command.Client) *Client {
	c, _ := client.Tracking.(*Client)
	return c
}

// Mode is what the client has asked for. A nil Client has asked for nothing.
func (c *Client) Mode() Mode {
	if c == nil {
		return Mode{}
	}
	return c.mode
}

// Set is CLIENT TRACKING. What was remembered is forgotten where it is switched off.
func (c *Client) Set(m Mode) {
	c.mode, c.said = m, false
	c.hub.enlist(c, m.On && !m.Redirected)
	if !m.On {
		c.forgetAll()
	}
}

// Stop is CLIENT TRACKING off.
func (c *Client) Stop() { c.Set(Mode{}) }

// Caching is CLIENT CACHING, for the next command.
func (c *Client) Caching() { c.said = true }

// entrySize is what a remembered key takes beside its name, in bytes.
const entrySize = 512

// Kept returns how many bytes the keys take that the client remembers; a nil Client has none.
func (c *Client) Kept() int {
	if c == nil {
		return 0
	}
	return int(c.kept.Load())
}

// Said reports whether there was a CLIENT CACHING for the next command.
func (c *Client) Said() bool { return c != nil && c.said }

// Used is told that there was another command than a CLIENT.
func (c *Client) Used() {
	if c != nil {
		c.said = false
	}
}

// Close forgets everything, and waits until nothing is reported any more.
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.hub.enlist(c, false)
	c.end()
	c.forgetAll()
	c.tasks.Wait()
	c.forgetAll() // what was marked meanwhile
}

func (c *Client) forgetAll() {
	c.mu.Lock()
	var marks []Mark
	for _, e := range c.entries {
		marks = append(marks, c.forget(e))
	}
	clear(c.lost)
	c.mu.Unlock()
	stop(marks...)
}

// stop stops marks. It is called without mu: a mark that reports something waits for that.
func stop(marks ...Mark) {
	for _, m := range marks {
		if m != nil {
			m.Stop()
		}
	}
}

// forget takes an entry out. Its mark is to be stopped. It is called with mu held.
func (c *Client) forget(e *entry) Mark {
	if e.gone {
		return nil
	}
	e.gone = true
	if e.ends != nil {
		e.ends.Stop()
	}
	delete(c.entries, e.id)
	c.kept.Add(-entrySize - int64(len(e.key)))
	delete(c.stirred, e)
	if c.running {
		c.kick() // it may wait for just this one
	}
	return e.mark
}

// lose forgets an entry and has it reported. It is called with mu held.
func (c *Client) lose(e *entry) Mark {
	c.lost[e.key] = true
	c.kick()
	return c.forget(e)
}

// loseAll forgets everything, and has the client be told that all may have changed.
func (c *Client) loseAll() {
	c.forgetAll()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
	c.kick()
}

// kick has the Client's goroutine look what is to be done. It is called with mu held.
func (c *Client) kick() {
	switch {
	case c.closed:
	case !c.running:
		c.running = true
		c.tasks.Go(c.run)
	default:
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// Turn is one command of the client on lock keys.
type Turn struct {
	client    *Client
	remembers bool
	noLoop    bool
	ids       []id
	db        int
	place     func(key string) quorum.Key
}

// Begin begins a command on these keys of a database. It is nil where nothing is tracked.
func (c *Client) Begin(db int, keys []string, place func(key string) quorum.Key) *Turn {
	if c == nil || !c.mode.On {
		return nil
	}
	t := &Turn{client: c, remembers: c.mode.remembers(c.said), noLoop: c.mode.NoLoop, db: db, place: place}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		t.ids = append(t.ids, id{db, key})
		c.busy[id{db, key}]++
	}
	return t
}

// Remembers reports whether what the command reads is to be remembered.
func (t *Turn) Remembers() bool { return t != nil && t.remembers }

// Fail is told, when the reply is out, that it could not be known what the keys hold, nor whether
// the command changes them, now or later. A client that waits until it is told a change would wait
// for nothing: it is told as soon as they can be read, or now and then.
func (t *Turn) Fail(now time.Time) {
	if t == nil {
		return
	}
	if t.remembers {
		t.client.mu.Lock()
		var marks []Mark
		for _, one := range t.ids {
			marks = append(marks, t.read(one.key, state{unknown: true}, keyspace.Edit{}, false, now)...)
		}
		t.client.mu.Unlock()
		stop(marks...)
	}
	t.End(nil, nil, now)
}

// End is told, when the reply is out, what the command read and changed at a moment: both may be
// nil.
func (t *Turn) End(read map[string]keyspace.Entry, edits []keyspace.Edit, now time.Time) {
	if t == nil {
		return
	}
	c := t.client
	c.mu.Lock()
	own := map[string]keyspace.Edit{}
	var marks []Mark
	for _, e := range edits {
		if !e.Changes() {
			continue
		}
		own[e.Key] = e
		if _, also := read[e.Key]; !also || !t.remembers {
			marks = append(marks, t.changed(e, now))
		}
	}
	if t.remembers {
		for key, is := range read {
			edit, changed := own[key]
			marks = append(marks, t.read(key, stateOf(is, now), edit, changed, now)...)
		}
	}
	for _, one := range t.ids {
		if c.busy[one]--; c.busy[one] == 0 {
			delete(c.busy, one)
		}
	}
	if len(c.stirred) > 0 {
		c.kick()
	}
	c.mu.Unlock()
	stop(marks...)
}

// changed is for a key that the client itself has changed. It is called with mu held.
func (t *Turn) changed(by keyspace.Edit, now time.Time) Mark {
	e := t.client.entries[id{t.db, by.Key}]
	switch {
	case e == nil:
		return nil
	case t.noLoop && e.was.is(stateOf(by.Was, now)):
		return t.client.forget(e)
	}
	return t.client.lose(e)
}

// read remembers a key. One that was remembered is told, if it did not hold the same when the
// client itself changed it, or read it now; of the client's own change in a script that reads the
// key as well its reply tells, but where the value is another one.
func (t *Turn) read(key string, is state, edit keyspace.Edit, changed bool, now time.Time) (marks []Mark) {
	c, one := t.client, id{t.db, key}
	if c.closed {
		return nil
	}
	if old := c.entries[one]; old != nil {
		before := is
		if changed {
			before = stateOf(edit.Was, now)
		}
		if !is.unknown && (!old.was.is(before) || changed && !t.noLoop && !old.was.holds(is)) {
			c.lost[key] = true
		}
		marks = append(marks, c.forget(old))
	}
	e := &entry{id: one, client: c, place: t.place(key), was: is, due: now}
	c.entries[one], c.stirred[e] = e, true
	c.kept.Add(entrySize + int64(len(key)))
	c.kick()
	return marks
}
