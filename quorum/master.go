package quorum

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// longRoundTrip is where more than one batch in flight begins to pay.
const longRoundTrip = 300 * time.Microsecond

// master is one Redis: its lanes, its health, and the cleanups that it owes.
type master struct {
	// name is its address, as errors and logs show it.
	name      string
	transport transport
	log       *slog.Logger
	rand      func() float64
	lanes     [maxLanes]*lane
	// oneLane keeps one order of all operations, however long the way.
	oneLane bool
	// troubled holds one signal for the prober: the master is in trouble.
	troubled chan struct{}
	// guard is nil for a master that votes whatever it may have forgotten.
	guard *guard
	// active is the number of lanes in use. It changes only while all are empty.
	active atomic.Uint32

	mu        sync.Mutex
	cause     error // why it is down; nil: it is up
	since     time.Time
	lastSent  time.Time
	roundTrip time.Duration
	owed      owed
}

func newMaster(name string, t transport, log *slog.Logger, rand func() float64) *master {
	m := &master{
		name: name, transport: t, log: log, rand: rand,
		troubled: make(chan struct{}, 1),
		cause:    errNotConnected, since: time.Now(),
		owed: owed{},
	}
	m.active.Store(1)
	for i := range m.lanes {
		m.lanes[i] = newLane(m)
	}
	return m
}

// run works until ctx ends, then sends what is queued and refuses the rest.
func (m *master) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, l := range m.lanes {
		wg.Go(func() { l.run(ctx) })
	}
	wg.Go(func() { m.probe(ctx) })
	wg.Wait()
	m.fail(ErrClosed)
	m.transport.close()
}

// lane is where the ops of a key go, always the same one while the master is up.
func (m *master) lane(key Key) *lane {
	active := m.active.Load()
	if active == 1 {
		return m.lanes[0]
	}
	return m.lanes[hash(key)%active]
}

// hash is FNV-1a over the key.
func hash(key Key) uint32 {
	h := uint32(2166136261) ^ uint32(key.DB)
	for i := range len(key.Name) {
		h = (h ^ uint32(key.Name[i])) * 16777619
	}
	return h
}

// ask queues an op, or answers it at once when the master is down.
func (m *master) ask(o *op) {
	if err := m.lane(o.change.lane()).push(o); err != nil {
		m.finish(o, reply{err: err})
	}
}

// send carries a batch there and back. A connection that fails takes the master
// down; the batch's replies say which ops are unknown.
func (m *master) send(ops []*op, replies []reply) {
	now := time.Now()
	for _, o := range ops {
		o.sentAt = now
	}
	m.mu.Lock()
	m.lastSent = now
	m.mu.Unlock()
	w := m.guard.witness(context.Background(), ops)
	err := m.transport.exec(context.Background(), ops, replies, w)
	m.guard.weigh(w, replies)
	if err != nil {
		m.fail(err)
	}
}

// finish hands a reply to whoever waits for it.
func (m *master) finish(o *op, r reply) {
	switch {
	case !o.isCleanup():
		o.round.answer(o.index, r)
	case r.unknown:
		m.owe(o.change)
	}
}

// refuse answers ops that were never sent.
func (m *master) refuse(ops []*op, reason error) {
	for _, o := range ops {
		if o.isCleanup() {
			m.owe(o.change)
		} else {
			m.finish(o, reply{err: reason})
		}
	}
}

// fail takes the master down: what waits for it is refused, and the prober
// starts. The first reason stands until a probe learns a newer one.
func (m *master) fail(reason error) {
	var waiting []*op
	m.mu.Lock()
	wasUp := m.cause == nil
	if wasUp || reason == ErrClosed {
		m.cause, m.since = reason, time.Now()
		for _, l := range m.lanes {
			waiting = append(waiting, l.shut(reason)...)
		}
	}
	m.mu.Unlock()
	m.refuse(waiting, reason)
	if wasUp && reason != ErrClosed {
		m.log.Warn("master down", "master", m.name, "cause", causeText(reason))
		m.wake()
	}
}

// wake has the prober look at the master at once.
func (m *master) wake() {
	select {
	case m.troubled <- struct{}{}:
	default:
	}
}

// cleanup sends a change that nobody waits for, now or when the master is back.
func (m *master) cleanup(c Change) {
	if err := m.lane(c.lane()).push(&op{change: c}); err != nil {
		m.owe(c)
	}
}

// owe remembers a cleanup for later. A repair is not one: the lock does without.
func (m *master) owe(c Change) {
	if c.kind == kindOffer || c.kind == kindMend {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.owed.add(c) {
		m.log.Debug("cleanup given up: the key's TTL ends it", "master", m.name)
	}
}

// rise brings the master up again: first the cleanups it owes, then new ops.
func (m *master) rise(roundTrip time.Duration) error {
	for {
		ops := m.settled(roundTrip)
		if len(ops) == 0 {
			return nil
		}
		if err := m.settle(ops); err != nil {
			return err
		}
	}
}

// settled opens the lanes if nothing is owed, or gives what is.
func (m *master) settled(roundTrip time.Duration) []*op {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ops := m.owed.take(maxBatch); len(ops) > 0 {
		return ops
	}
	m.roundTrip = roundTrip
	m.active.Store(m.lanesFor(roundTrip))
	m.log.Info("master up", "master", m.name, "was_down", time.Since(m.since).Round(time.Millisecond), "cause", causeText(m.cause))
	m.cause, m.since = nil, time.Now()
	for _, l := range m.lanes {
		l.open()
	}
	return nil
}

// lanesFor says how many batches may be in flight over such a distance.
func (m *master) lanesFor(roundTrip time.Duration) uint32 {
	if roundTrip >= longRoundTrip && !m.oneLane {
		return maxLanes
	}
	return 1
}

// settle sends cleanups before the master is up. What gets no answer stays owed.
func (m *master) settle(ops []*op) error {
	replies := make([]reply, len(ops))
	for _, o := range ops {
		o.eval = true // a restarted master knows no script
	}
	err := m.transport.exec(context.Background(), ops, replies, nil)
	for i, o := range ops {
		m.finish(o, replies[i])
	}
	return err
}

// MasterStatus is what a cluster knows of one of its masters.
type MasterStatus struct {
	// Name is its address, without credentials.
	Name string
	// Standing is whether it votes, or why not.
	Standing Standing
	// Err is nil while the master is up, else why it is not.
	Err error
	// Quarantine is why it has no vote, and for how long, although it is up, or nil.
	Quarantine *QuarantineError
	// Since is when it went up or down.
	Since time.Time
	// RoundTrip is the shortest that the last probe measured.
	RoundTrip time.Duration
	// Legacy is set for the legacy server, which is none of the masters.
	Legacy bool
	// Owed is how many cleanups wait for it to be back.
	Owed int
}

func (m *master) status() MasterStatus {
	quarantine := m.guard.standing()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := MasterStatus{Name: m.name, Err: m.cause, Since: m.since, RoundTrip: m.roundTrip, Owed: len(m.owed)}
	if m.cause == nil {
		s.Quarantine = quarantine
	}
	s.Standing = standing(m.cause, s.Quarantine)
	return s
}
