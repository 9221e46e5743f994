package wake

import "sync"

// News is what a [Mark] has to tell.
type News byte

const (
	// Stirred: some masters told of a change, but too few for Changes.
	Stirred News = iota
	// Changes: so many masters told of a change that the key has another value, or will have at
	// once.
	Changes
	// Unwatched: a master cannot be watched any more.
	Unwatched
)

// Mark tells one who has read a key that it may have changed. Unlike an [Alarm] it looks only once,
// when it is set, and what it has told of stays told.
type Mark struct {
	key     string
	quorum  int
	tell    func(News)
	watches []*watch
	settled chan struct{}

	mu    sync.Mutex
	seen  []state // asked: not armed yet; held: armed; changed; unknown
	ready bool    // settled is closed
}

// Mark sets one for a key of a database. tell is called whenever there is news of a master that was
// armed; it must not wait for anything, nor call the Mark.
func (w *Waker) Mark(db int, key string, tell func(News)) *Mark {
	m := &Mark{key: key, quorum: w.opts.Quorum, tell: tell, settled: make(chan struct{}), seen: make([]state, len(w.opts.Servers))}
	if len(key) <= longestKey {
		m.watches = w.watches(db)
	}
	for i := range m.watches {
		m.seen[i] = asked
	}
	for _, one := range m.watches {
		one.mark(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	return m
}

// Settled is closed when a majority is armed, or all that is going to be.
func (m *Mark) Settled() <-chan struct{} { return m.settled }

// Watched reports whether a majority of the masters will tell of changes, or has told of one: of
// what any majority of them changes, it hears.
func (m *Mark) Watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count(held)+m.count(changed) >= m.quorum
}

// Stop ends it. After it nothing is told any more, but what is being told meanwhile.
func (m *Mark) Stop() {
	for _, w := range m.watches {
		w.remove(m.key, m)
	}
}

func (m *Mark) count(of state) (n int) {
	for _, s := range m.seen {
		if s == of {
			n++
		}
	}
	return n
}

// settle is called with mu held.
func (m *Mark) settle() {
	if !m.ready && (m.count(asked) == 0 || m.count(held)+m.count(changed) >= m.quorum) {
		m.ready = true
		close(m.settled)
	}
}

// see takes what is known of a master. A change that is told before a look was answered was before
// that look, or makes its answer stale.
func (m *Mark) see(master int, s sighting) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.seen[master]
	switch {
	case was == changed && s.state != unknown, s.state == asked && was != unknown, s.state == changed && was != held && !s.stale:
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
		m.tell(Stirred)
	case s.state == unknown && (was == held || was == changed):
		m.tell(Unwatched)
	}
}
