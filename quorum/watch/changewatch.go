package watch

import "sync"

// Report is the kind of an event that a [ChangeWatch] reports.
type Report byte

const (
	// ReportSomeChanged means that some masters reported a change, but too few for
	// ReportQuorumChanged.
	ReportSomeChanged Report = iota
	// ReportQuorumChanged means that a majority of the masters reported a change. So the key has a
	// different value, or will have it in a moment.
	ReportQuorumChanged
	// ReportUnwatched means that the connection to a master broke, so that changes may go
	// unreported.
	ReportUnwatched
)

// ChangeWatch reports that a key has changed to a caller that has read it. It reports the first
// change on each master. Unlike an [Alarm] it reads the key only when it is created, and after the
// connection to a master broke.
type ChangeWatch struct {
	key     string
	quorum  int
	report  func(Report)
	watches []*watch
	settled chan struct{}

	mu        sync.Mutex
	states    []state // reading: not armed yet; held: armed; changed; unknown
	isSettled bool    // settled is closed
}

// WatchChange returns a ChangeWatch for a key of a database. The ChangeWatch arms each master: it
// reads the key, so that the master reports the next change. It calls report for each event of an
// armed master. report must not block, nor call the ChangeWatch.
func (w *Watcher) WatchChange(db int, key string, report func(Report)) *ChangeWatch {
	m := &ChangeWatch{key: key, quorum: w.opts.Quorum, report: report, settled: make(chan struct{}),
		states: make([]state, len(w.opts.Servers))}
	if len(key) <= maxKeyLength {
		m.watches = w.watches(db)
	}
	for i := range m.watches {
		m.states[i] = stateReading
	}
	for _, wt := range m.watches {
		wt.addChangeWatch(m)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settle()
	return m
}

// Settled returns a channel that is closed when a majority of the masters is armed, or no further
// master can be armed.
func (m *ChangeWatch) Settled() <-chan struct{} { return m.settled }

// IsWatched reports whether a majority of the masters reports changes, or has reported one, so that
// no change by a majority goes unreported.
func (m *ChangeWatch) IsWatched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count(stateHeld)+m.count(stateChanged) >= m.quorum
}

// Stop ends the watch. A report that is in progress may still arrive.
func (m *ChangeWatch) Stop() {
	for _, w := range m.watches {
		w.remove(m.key, m)
	}
}

func (m *ChangeWatch) count(match state) (n int) {
	for _, s := range m.states {
		if s == match {
			n++
		}
	}
	return n
}

// settle closes settled if the condition of Settled is met. Callers hold mu.
func (m *ChangeWatch) settle() {
	if !m.isSettled && (m.count(stateReading) == 0 || m.count(stateHeld)+m.count(stateChanged) >= m.quorum) {
		m.isSettled = true
		close(m.settled)
	}
}

// update stores the state of the key on a master. A change that is reported before the reply to a
// read precedes the read, or makes its reply stale.
func (m *ChangeWatch) update(master int, s observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.states[master]
	switch {
	case old == stateChanged && s.state != stateUnknown,
		s.state == stateReading && old != stateUnknown,
		s.state == stateChanged && old != stateHeld && !s.stale:
		return
	case s.state == stateFree:
		m.states[master] = stateHeld
	default:
		m.states[master] = s.state
	}
	m.settle()
	switch {
	case s.state == stateChanged && m.count(stateChanged) >= m.quorum:
		m.report(ReportQuorumChanged)
	case s.state == stateChanged:
		m.report(ReportSomeChanged)
	case s.state == stateUnknown && (old == stateHeld || old == stateChanged):
		m.report(ReportUnwatched)
	}
}
