package master

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/guard"
)

// Master is one Redis: its lanes, its health, and the removals that it is owed. It works while
// Run runs.
type Master struct {
	// name is its address, as errors and logs show it.
	name      string
	transport Transport
	log       *slog.Logger
	rand      func() float64
	// first is the lane of database 0, lanes those of all that were asked for.
	first    *lane
	lanes    sync.Map // of *lane, by database
	allLanes []*lane  // the same; by mu
	// tasks are what carries batches.
	tasks sync.WaitGroup
	begun time.Time
	// lastSent is when a batch left last, since begun.
	lastSent atomic.Int64
	// troubled holds one signal for the prober: the master is in trouble.
	troubled chan struct{}
	// guard is nil where nothing is guarded: its votes count.
	guard *guard.Guard
	// turns are those of all masters for what is long; nil: it may always go.
	turns *Turns
	// Voted is called whenever the master was looked at and votes; it must not wait. It is set
	// before Run.
	Voted func()
	// roundTrips is called with how long each batch took that was answered; nil: it is not
	// measured.
	roundTrips func(time.Duration)

	mu        sync.Mutex
	cause     error // why it is down; nil: it is up
	since     time.Time
	roundTrip time.Duration
	owed      owed
}

// SetPassword has connections that are made from now on log in with another password. Any goroutine
// may call it.
func (m *Master) SetPassword(password string) { m.transport.SetPassword(password) }

// New makes a master that is reached by a transport and down until Run reaches it. name is its
// address, as errors and logs show it; rand gives numbers in [0, 1); turns are those of all
// masters, or nil.
func New(name string, t Transport, turns *Turns, log *slog.Logger, rand func() float64) *Master {
	m := &Master{
		name: name, transport: t, turns: turns, log: log, rand: rand,
		troubled: make(chan struct{}, 1),
		cause:    errNotConnected, since: time.Now(),
		owed: owed{all: map[owedRemoval]struct{}{}}, begun: time.Now(),
	}
	m.first = m.laneOf(0)
	return m
}

// GuardWith has a guard say whether the master's votes count. Without one they do. It is called
// before Run.
func (m *Master) GuardWith(g *guard.Guard) {
	m.guard = g
	if g.Watches() {
		m.transport.Pin(g.Withdraw)
	}
}

// Observe has f called with how long each batch took that was answered, from its sending on. f must
// not wait. It is called before Run.
func (m *Master) Observe(f func(took time.Duration)) { m.roundTrips = f }

// Guarded is the master as its guard sees it.
func (m *Master) Guarded() guard.Master {
	return guard.Master{Name: m.name, Conn: m.transport, IsDown: m.IsDown, Wake: m.wake}
}

// Name is its address, without credentials.
func (m *Master) Name() string { return m.name }

// laneOf is the lane of a database; it is made when that is first asked for.
func (m *Master) laneOf(db int) *lane {
	if known, ok := m.lanes.Load(db); ok {
		return known.(*lane)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lanes.Load(db); ok {
		return known.(*lane)
	}
	made := newLane(m, db, m.cause)
	m.allLanes = append(m.allLanes, made)
	m.lanes.Store(db, made)
	return made
}

// Run works until ctx ends, then sends what is queued and refuses the rest.
func (m *Master) Run(ctx context.Context) {
	m.probe(ctx)
	m.waitIdle()
	m.fail(ErrClosed)
	m.waitIdle() // what was sent since
	for _, l := range m.lanesNow() {
		l.hangUp()
	}
	m.tasks.Wait()
	m.transport.Close()
}

func (m *Master) lanesNow() []*lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.allLanes)
}

// waitIdle waits until nothing is in flight, and nothing waits.
func (m *Master) waitIdle() {
	for _, l := range m.lanesNow() {
		l.waitIdle()
	}
}
