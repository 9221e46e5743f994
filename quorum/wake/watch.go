package wake

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/feed"
	"redlock-proxy/quorum/guard/script"
)

// watch is that of a database of one master. It is connected while there are alarms.
type watch struct {
	waker  *Waker
	master int
	server Server
	db     int

	mu      sync.Mutex
	alarms  map[string][]listener
	running bool
	line    *line     // nil: not connected
	cause   error     // why not
	idle    time.Time // since when there are no alarms
	warned  string    // the refusal that was logged
}

// listener hears of a key: an [Alarm] or a [Mark].
type listener interface {
	// see takes what is known of a master. It must not wait, nor call the watch.
	see(master int, s sighting)
}

// add has a listener hear of a key, and connects.
func (w *watch) add(key string, a listener) {
	w.mu.Lock()
	w.alarms[key] = append(w.alarms[key], a)
	starts := !w.running
	w.running = true
	w.mu.Unlock()
	if starts {
		w.waker.start(w.run)
	}
}

// mark is add for one that is looked for at once, or when the master is connected; one that is not
// going to be is unknown.
func (w *watch) mark(m *Mark) {
	w.add(m.key, m)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.line != nil:
		w.line.ask(look{key: m.key})
	case w.cause != nil, w.server.IsDown():
		m.see(w.master, sighting{state: unknown})
	}
}

// remove has a listener hear nothing more.
func (w *watch) remove(key string, a listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.alarms[key], func(other listener) bool { return other == a })
	if len(left) > 0 {
		w.alarms[key] = left
		return
	}
	delete(w.alarms, key)
	if len(w.alarms) == 0 {
		w.idle = time.Now()
	}
}

// ask has the master look at a key, and reports whether it is watched.
func (w *watch) ask(one look) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == nil {
		return false
	}
	w.line.ask(one)
	return true
}

// see tells the alarms of a key.
func (w *watch) see(key string, s sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.alarms[key] {
		a.see(w.master, s)
	}
}

// seeAll tells all alarms.
func (w *watch) seeAll(s sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.alarms {
		for _, a := range all {
			a.see(w.master, s)
		}
	}
}

// run connects again and again, as long as there are alarms.
func (w *watch) run() {
	ctx := w.waker.ctx
	feed.Keeper{
		Server: w.server, Rand: w.waker.opts.Rand, Ended: w.lost,
		Wanted: func() bool { return w.goesOn(ctx) },
		Once:   func() error { return w.once(ctx) },
	}.Keep(ctx)
}

// goesOn reports whether a connection is wanted. Where it is not, the watch does not run any more.
func (w *watch) goesOn(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = ctx.Err() == nil && len(w.alarms) > 0
	return w.running
}

// once connects, and takes what the master tells until the connection ends.
func (w *watch) once(ctx context.Context) error {
	conn, err := w.server.Watch(ctx, w.db)
	if err != nil {
		return err
	}
	l := newLine(conn, w)
	defer l.End()
	defer context.AfterFunc(ctx, l.End)()
	if err := l.greet(); err != nil {
		return err
	}
	w.waker.tasks.Go(l.write)
	w.connected(l)
	return l.read()
}

// connected has looks go over a connection, and looks at all keys that are waited for: what has
// changed meanwhile was not told.
func (w *watch) connected(l *line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line, w.cause, w.warned = l, nil, ""
	for key, all := range w.alarms {
		for _, a := range all {
			a.see(w.master, sighting{state: asked})
		}
		l.ask(look{key: key})
	}
}

// lost is for a connection that has ended, or was not made: nothing is known of the master.
func (w *watch) lost(err error) {
	w.mu.Lock()
	w.line, w.cause = nil, err
	warn := feed.IsRefusal(err) && w.warned != err.Error()
	if warn {
		w.warned = err.Error()
	}
	w.mu.Unlock()
	w.seeAll(sighting{state: unknown})
	if mistake := new(contained.PanicError); errors.As(err, &mistake) {
		w.waker.opts.Logger.Error("a watch failed", "master", w.server.Name(), "cause", mistake)
	}
	if warn {
		w.waker.opts.Logger.Warn("a master does not let itself be watched: those who wait for a lock poll it", "master", w.server.Name(), "cause", err)
	}
}

// isOwn reports whether a key is no client's.
func isOwn(key string) bool { return strings.HasPrefix(key, script.OwnPrefix) }

// standing is how many keys of clients are watched, and why none is where some should be.
func (w *watch) standing() (keys int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.line != nil:
		for key := range w.alarms {
			if !isOwn(key) {
				keys++
			}
		}
		return keys, nil
	case len(w.alarms) > 0:
		return 0, w.cause
	}
	return 0, nil
}

// isIdle reports whether there were no alarms for a while.
func (w *watch) isIdle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.alarms) == 0 && now.Sub(w.idle) >= feed.Linger
}
