package master

import (
	"slices"
	"time"

	"redlock-proxy/quorum/register"
)

// bringUp marks the master as up. The master gets its pending removals ahead of new ops. bringUp
// sends as many full batches of removals as are pending. It passes the remaining removals to the
// lanes, because callers may add removals while the master is still down.
func (m *Master) bringUp(roundTrip time.Duration) error {
	for batches := m.pendingBatches(); batches > 0; batches-- {
		if err := m.sendPendingBatch(m.takePendingBatch()); err != nil {
			return err
		}
	}
	m.openLanes(roundTrip)
	return nil
}

func (m *Master) pendingBatches() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pendingRemovals.removals) / maxBatch
}

func (m *Master) takePendingBatch() []*op {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pendingRemovals.take(maxBatch)
}

// openLanes makes the lanes accept ops again, behind the pending removals.
func (m *Master) openLanes(roundTrip time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roundTrip = roundTrip
	m.logUp()
	m.cause, m.stateSince = nil, time.Now()
	pending := m.pendingRemovals.take(len(m.pendingRemovals.removals))
	for _, l := range m.allLanes {
		if l.open(pending) {
			m.tasks.Go(l.launch)
		}
	}
}

// logUp logs that the master is up. The first time, it leaves the log message at info level to an
// active guard.
func (m *Master) logUp() {
	switch {
	case m.cause != errNotConnected:
		m.stateLog.Info(time.Now(), "master up", "master", m.name, "was_down", time.Since(m.stateSince).Round(time.Millisecond),
			"cause", CauseText(m.cause))
	case m.guard.IsActive():
		m.log.Debug("master up", "master", m.name)
	default:
		m.stateLog.Info(time.Now(), "master up", "master", m.name)
	}
}

// sendPendingBatch sends removals before the master is up. Failed and unanswered removals stay
// pending.
func (m *Master) sendPendingBatch(ops []*op) error {
	slices.SortFunc(ops, func(a, b *op) int { return a.db - b.db })
	var lastErr error
	for len(ops) > 0 {
		db := ops[0].db
		n := slices.IndexFunc(ops, func(o *op) bool { return o.db != db })
		if n < 0 {
			n = len(ops)
		}
		f := &Batch{db: db}
		f.load(ops[:n])
		for _, o := range f.ops {
			o.fullScript = true // a restarted master has no scripts
		}
		if err := m.exchange(f); err != nil {
			lastErr = err
		}
		for i, o := range f.ops {
			m.finish(o, &f.replies[i])
		}
		ops = ops[n:]
	}
	return lastErr
}

// exchange sends a batch over a new link, and waits for the replies. These replies do not count as
// votes.
func (m *Master) exchange(f *Batch) error {
	k, err := m.dial(f.db)
	if err != nil {
		f.fillMissingReplies(register.Failed, err)
		return err
	}
	defer k.Close()
	if !k.Send(f) {
		f.fillMissingReplies(register.Failed, errLinkBroken)
		return errLinkBroken
	}
	_, err = k.Receive()
	f.fillMissingReplies(register.Unknown, err)
	return err
}

// addPending stores a removal for later.
func (m *Master) addPending(o *op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.pendingRemovals.add(o) {
		m.log.Debug("too many pending removals: the key stays until its lease expires", "master", m.name)
	}
}

// sendPending sends pending removals again if the master is up. Such removals are pending because
// the master answered them with an error.
func (m *Master) sendPending() {
	m.mu.Lock()
	var ops []*op
	if m.cause == nil {
		ops = m.pendingRemovals.take(maxBatch)
	}
	m.mu.Unlock()
	for _, o := range ops {
		m.post(o)
	}
}
