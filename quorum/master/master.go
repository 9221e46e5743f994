package master

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/limitedlog"
	"redlock-proxy/quorum/guard"
)

// Master transports operations to one Redis master. It holds the master's lanes, state, and pending
// removals. It works while Run runs.
type Master struct {
	// name is the master's address for errors and logs.
	name      string
	transport Transport
	log       *slog.Logger
	// stateLog logs that the master is up or down. A flapping master would fill an unlimited log.
	stateLog limitedlog.Log
	rand     func() float64
	// lane0 is the lane of database 0. lanes and allLanes hold the lanes of all databases in use.
	lane0    *lane
	lanes    sync.Map // of *lane, by database
	allLanes []*lane  // the same; guarded by mu
	// tasks counts the goroutines that send and receive batches.
	tasks     sync.WaitGroup
	startTime time.Time
	// lastSent is the time from startTime to the sending of the last batch.
	lastSent atomic.Int64
	// probeSignal holds one signal that makes the prober examine the master at once.
	probeSignal chan struct{}
	// guard decides whether the master's votes count.
	guard *guard.Guard
	// turns limits the masters that process long ops at the same time; nil: no limit.
	turns *Turns
	// OnVote runs, if it is set, whenever the prober has examined the master and the master votes.
	// It must not block, and must be set before Run.
	OnVote func()
	// observeRoundTrip, unless it is nil, gets the duration of each answered batch.
	observeRoundTrip func(time.Duration)

	mu              sync.Mutex
	cause           error     // why the master is down; nil: it is up
	stateSince      time.Time // when cause was set or cleared
	roundTrip       time.Duration
	pendingRemovals pendingRemovals
}

// SetPassword sets the password for new connections. It is safe for concurrent use.
func (m *Master) SetPassword(password string) { m.transport.SetPassword(password) }

// New returns a master that is down until Run reaches it over the transport. name is the master's
// address for errors and logs. rand returns numbers in [0, 1). All masters share turns, which may
// be nil.
func New(name string, t Transport, turns *Turns, log *slog.Logger, rand func() float64) *Master {
	m := &Master{
		name: name, transport: t, turns: turns, log: log, stateLog: limitedlog.Log{Logger: log}, rand: rand,
		probeSignal: make(chan struct{}, 1),
		cause:       errNotConnected, stateSince: time.Now(),
		pendingRemovals: pendingRemovals{removals: map[pendingRemoval]struct{}{}}, startTime: time.Now(),
	}
	m.lane0 = m.laneFor(0)
	return m
}

// SetGuard sets the guard that decides whether the master's votes count. It must be called before
// Run.
func (m *Master) SetGuard(g *guard.Guard) {
	m.guard = g
	if g.IsActive() {
		m.transport.PinServer(g.Withdraw)
	}
}

// ObserveRoundTrips sets a function that gets the time from the sending of each answered batch to
// its replies. The function must not block. ObserveRoundTrips must be called before Run.
func (m *Master) ObserveRoundTrips(f func(roundTrip time.Duration)) { m.observeRoundTrip = f }

// GuardMaster returns the master in the form that its guard needs.
func (m *Master) GuardMaster() guard.Master {
	return guard.Master{Name: m.name, Conn: m.transport, IsDown: m.IsDown, Wake: m.probeNow}
}

// Name returns the address of the master, without the login.
func (m *Master) Name() string { return m.name }

// laneFor returns the lane of a database, and creates it if necessary.
func (m *Master) laneFor(db int) *lane {
	if existing, ok := m.lanes.Load(db); ok {
		return existing.(*lane)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if existing, ok := m.lanes.Load(db); ok {
		return existing.(*lane)
	}
	l := newLane(m, db, m.cause)
	m.allLanes = append(m.allLanes, l)
	m.lanes.Store(db, l)
	return l
}

// Run works until ctx ends. Then it sends the queued ops, refuses further ops, and removes this
// proxy's announcement.
func (m *Master) Run(ctx context.Context) {
	m.probe(ctx)
	m.waitIdle()
	wasUp := !m.IsDown()
	m.takeDown(ErrClosed)
	m.waitIdle() // for ops that callers have pushed meanwhile
	if wasUp {
		m.endAnnouncement()
	}
	for _, l := range m.currentLanes() {
		l.closeLink()
	}
	m.tasks.Wait()
	m.transport.Close()
}

// endAnnouncement removes this proxy from the master's list of running proxies, if the proxy ends.
func (m *Master) endAnnouncement() {
	ctx, cancel := context.WithTimeout(context.Background(), heartbeat)
	defer cancel()
	if err := m.guard.EndAnnouncement(ctx); err != nil {
		m.log.Debug("this proxy stays listed for a few seconds", "master", m.name, "cause", CauseText(err))
	}
}

func (m *Master) currentLanes() []*lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.allLanes)
}

// waitIdle waits until nothing is in flight or queued.
func (m *Master) waitIdle() {
	for _, l := range m.currentLanes() {
		l.waitIdle()
	}
}
