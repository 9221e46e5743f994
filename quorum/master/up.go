package master

import (
	"slices"
	"time"

	"redlock-proxy/quorum/register"
)

// bringUp opens the master again. It gets the removals that it is owed ahead of new ops: whole
// batches by themselves, and the rest in the lanes, since as long as it is down more may come
// meanwhile.
func (m *Master) bringUp(roundTrip time.Duration) error {
	for batches := m.owedBatches(); batches > 0; batches-- {
		if err := m.sendOwed(m.takeOwed()); err != nil {
			return err
		}
	}
	m.open(roundTrip)
	return nil
}

func (m *Master) owedBatches() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.owed.all) / maxBatch
}

func (m *Master) takeOwed() []*op {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owed.take(maxBatch)
}

// open has lanes take ops again, after what is still owed.
func (m *Master) open(roundTrip time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roundTrip = roundTrip
	m.logUp()
	m.cause, m.since = nil, time.Now()
	owed := m.owed.take(len(m.owed.all))
	for _, l := range m.allLanes {
		if l.open(owed) {
			m.tasks.Go(l.launch)
		}
	}
}

// logUp logs that the master is up. At the first time the guard has a line of its own:
// whether it votes.
func (m *Master) logUp() {
	switch {
	case m.cause != errNotConnected:
		m.log.Info("master up", "master", m.name, "was_down", time.Since(m.since).Round(time.Millisecond), "cause", CauseText(m.cause))
	case m.guard.Watches():
		m.log.Debug("master up", "master", m.name)
	default:
		m.log.Info("master up", "master", m.name)
	}
}

// sendOwed sends removals before the master is up. What gets no answer stays owed.
func (m *Master) sendOwed(ops []*op) error {
	slices.SortFunc(ops, func(a, b *op) int { return a.db - b.db })
	var failed error
	for len(ops) > 0 {
		db := ops[0].db
		n := slices.IndexFunc(ops, func(o *op) bool { return o.db != db })
		if n < 0 {
			n = len(ops)
		}
		f := &Flight{db: db}
		f.load(ops[:n])
		for _, o := range f.ops {
			o.whole = true // a restarted master knows no script
		}
		if err := m.exchange(f); err != nil {
			failed = err
		}
		for i, o := range f.ops {
			m.finish(o, &f.replies[i])
		}
		ops = ops[n:]
	}
	return failed
}

// exchange sends a batch over a link of its own and waits for its replies. No vote of it
// counts.
func (m *Master) exchange(f *Flight) error {
	k, err := m.dial(f.db)
	if err != nil {
		f.fillIn(register.Failed, err)
		return err
	}
	defer k.Close()
	if !k.Send(f) {
		f.fillIn(register.Failed, errLinkBroken)
		return errLinkBroken
	}
	_, err = k.Receive()
	f.fillIn(register.Unknown, err)
	return err
}

// owe remembers an op for later.
func (m *Master) owe(o *op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.owed.add(o) {
		m.log.Debug("removal given up: the key's TTL ends it", "master", m.name)
	}
}

// pay sends what is owed by a master that is up: it answered with an error then.
func (m *Master) pay() {
	m.mu.Lock()
	var ops []*op
	if m.cause == nil {
		ops = m.owed.take(maxBatch)
	}
	m.mu.Unlock()
	for _, o := range ops {
		m.post(o)
	}
}
