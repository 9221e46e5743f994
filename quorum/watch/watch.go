package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/quorum/guard/script"
	"redlock-proxy/quorum/pushconn"
)

// watch watches keys in a database of one master. It is connected while there are listeners.
type watch struct {
	watcher *Watcher
	master  int
	server  Server
	db      int

	mu          sync.Mutex
	listeners   map[string][]listener
	running     bool
	conn        *connection // nil: not connected
	cause       error       // why the master is not connected
	idleSince   time.Time   // when the last listener was removed
	lastRefusal string      // the refusal that was logged last
}

// listener gets the states of a key: an [Alarm] or a [ChangeWatch].
type listener interface {
	// update processes the state of the key on a master. It must not block, nor call the watch.
	update(master int, s observation)
}

// add registers a listener for a key, and connects if necessary.
func (w *watch) add(key string, l listener) {
	w.mu.Lock()
	w.listeners[key] = append(w.listeners[key], l)
	starts := !w.running
	w.running = true
	w.mu.Unlock()
	if starts {
		w.watcher.start(w.run)
	}
}

// addChangeWatch registers a ChangeWatch, and reads its key at once, or when the master is
// connected. If the master cannot be connected, the state is unknown.
func (w *watch) addChangeWatch(m *ChangeWatch) {
	w.add(m.key, m)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.conn != nil:
		w.conn.ask(readRequest{key: m.key})
	case w.cause != nil, w.server.IsDown():
		m.update(w.master, observation{state: stateUnknown})
	}
}

// remove removes a listener.
func (w *watch) remove(key string, target listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	remaining := slices.DeleteFunc(w.listeners[key], func(l listener) bool { return l == target })
	if len(remaining) > 0 {
		w.listeners[key] = remaining
		return
	}
	delete(w.listeners, key)
	if len(w.listeners) == 0 {
		w.idleSince = time.Now()
	}
}

// ask requests a read from the master, and reports whether the master is connected.
func (w *watch) ask(l readRequest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return false
	}
	w.conn.ask(l)
	return true
}

// update passes an observation to the listeners of a key.
func (w *watch) update(key string, s observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.listeners[key] {
		l.update(w.master, s)
	}
}

// updateAll passes an observation to all listeners.
func (w *watch) updateAll(s observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ofKey := range w.listeners {
		for _, target := range ofKey {
			target.update(w.master, s)
		}
	}
}

// run connects again and again while there are listeners.
func (w *watch) run() {
	ctx := w.watcher.ctx
	pushconn.Reconnector{
		Server: w.server, Rand: w.watcher.opts.Rand, OnEnd: w.onDisconnected,
		Wanted:  func() bool { return w.keepRunning(ctx) },
		Connect: func() error { return w.connectAndRead(ctx) },
	}.Run(ctx)
}

// keepRunning reports whether a connection is needed. If it returns false, run ends, and the next
// call of add starts run again.
func (w *watch) keepRunning(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = ctx.Err() == nil && len(w.listeners) > 0
	return w.running
}

// connectAndRead connects, and processes messages of the master until the connection ends.
func (w *watch) connectAndRead(ctx context.Context) error {
	conn, err := w.server.Watch(ctx, w.db)
	if err != nil {
		return err
	}
	l := newConnection(conn, w)
	defer l.End()
	defer context.AfterFunc(ctx, l.End)()
	if err := l.greet(); err != nil {
		return err
	}
	w.watcher.tasks.Go(l.write)
	w.onConnected(l)
	return l.read()
}

// onConnected registers a connection, and reads all keys with listeners, because changes since
// the last connection were not reported.
func (w *watch) onConnected(l *connection) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn, w.cause, w.lastRefusal = l, nil, ""
	for key, ofKey := range w.listeners {
		for _, target := range ofKey {
			target.update(w.master, observation{state: stateReading})
		}
		l.ask(readRequest{key: key})
	}
}

// onDisconnected handles the end of a connection, or a failed attempt. From then on the state of
// the keys on the master is unknown.
func (w *watch) onDisconnected(err error) {
	w.mu.Lock()
	w.conn, w.cause = nil, err
	warn := pushconn.IsRefusal(err) && w.lastRefusal != err.Error()
	if warn {
		w.lastRefusal = err.Error()
	}
	w.mu.Unlock()
	w.updateAll(observation{state: stateUnknown})
	if panicErr := new(contained.PanicError); errors.As(err, &panicErr) {
		w.watcher.opts.Logger.Error("internal error in a watch; report this line", "master", w.server.Name(), "cause", panicErr)
	}
	if warn {
		w.watcher.opts.Logger.Warn("a master refuses client tracking: the proxy polls it for waiting clients", "master", w.server.Name(),
			"cause", err)
	}
}

// isProxyKey reports whether a key belongs to the proxies.
func isProxyKey(key string) bool { return strings.HasPrefix(key, script.OwnPrefix) }

// status returns the number of watched keys of clients, or the reason why no key is watched
// although there are listeners.
func (w *watch) status() (keys int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.conn != nil:
		for key := range w.listeners {
			if !isProxyKey(key) {
				keys++
			}
		}
		return keys, nil
	case len(w.listeners) > 0:
		return 0, w.cause
	}
	return 0, nil
}

// isIdle reports whether there have been no listeners for pushconn.IdleTimeout.
func (w *watch) isIdle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.listeners) == 0 && now.Sub(w.idleSince) >= pushconn.IdleTimeout
}
