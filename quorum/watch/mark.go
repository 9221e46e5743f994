package watch

import "sync"

// Report is a report of a [ChangeWatch].
type Report byte

const (
	// SomeChanged means that some masters reported a change, but too few for Changes.
	SomeChanged Report = iota
	// Changes means that so many masters reported a change that the key has another value, or will
	// have it in a moment.
	Changes
	// Unwatched means that a master can no longer be watched.
	Unwatched
)

// ChangeWatch reports changes of a key to a caller that has read it. Unlike an [Alarm] it looks
// only once, when it is set, and reports each change once.
type ChangeWatch struct {
	key     string
	quorum  int
	tell    func(Report)
	watches []*watch
	settled chan struct{}

	mu    sync.Mutex
	seen  []state // asked: not armed yet; held: armed; changed; unknown
	ready bool    // settled is closed
}

// Mark returns a ChangeWatch for a key of a database. tell is called with each report of a master
// that was armed. It must not block, nor call the ChangeWatch.
func (w *Watcher) Mark(db int, key string, tell func(Report)) *ChangeWatch {
	m := &ChangeWatch{key: key, quorum: w.opts.Quorum, tell: tell, settled: make(chan struct{}),
		seen: make([]state, len(w.opts.Servers))}
	if len(key) <= longestKey {
		m.watches = w.watches(db)
	}
	for i := range m.watches {
		m.seen[i] = asked
	}
	for _, one := range m.watches {
		one.addMark(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	return m
}

// Settled returns a channel that is closed when a majority is armed, or no further master can be.
func (m *ChangeWatch) Settled() <-chan struct{} { return m.settled }

// Watched reports whether a majority of the masters reports changes, or has reported one, so that
// no change by a majority goes unreported.
func (m *ChangeWatch) Watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count(held)+m.count(changed) >= m.quorum
}

// Stop ends the watch. A report that is in progress may still arrive.
func (m *ChangeWatch) Stop() {
	for _, w := range m.watches {
		w.remove(m.key, m)
	}
}

func (m *ChangeWatch) count(of state) (n int) {
	for _, s := range m.seen {
		if s == of {
			n++
		}
	}
	return n
}

// settle closes settled if it is due. Callers hold mu.
func (m *ChangeWatch) settle() {
	if !m.ready && (m.count(asked) == 0 || m.count(held)+m.count(changed) >= m.quorum) {
		m.ready = true
		close(m.settled)
	}
}

// update stores the state of the key on a master. A change that is reported before the reply to a
// look precedes the look, or makes its reply stale.
func (m *ChangeWatch) update(master int, s sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.seen[master]
	switch {
	case was == changed && s.state != unknown,
		s.state == asked && was != unknown,
		s.state == changed && was != held && !s.stale:
		return
	case s.state == free:
		m.seen[master] = held
	default:
		m.seen[master] = s.state
	}
	m.settle()
	switch {
	case s.state == changed && m.count(changed) >= m.quorum:
		m.tell(Changes)
	case s.state == changed:
		m.tell(SomeChanged)
	case s.state == unknown && (was == held || was == changed):
		m.tell(Unwatched)
	}
}
