package quorum

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/contained"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/removals"
	"redlock-proxy/quorum/wake"
)

// Cluster is N independent Redis masters that vote. It works while Run runs.
type Cluster struct {
	opts   Options
	log    *slog.Logger
	source *cell.Source
	// freed is called with keys that may have been freed.
	freed func(Key) (tries bool)
	// taking is called with keys that are about to be taken, by send, which calls what it gets,
	// unless that is nil, for what is to leave with that.
	taking func(key Key, send func(and func()))
	// messages are those between proxies, or nil.
	messages *Messages
	// roundTrips is called with how long batches took; see Observe.
	roundTrips func(masters []string) func(master int, took time.Duration)

	current atomic.Pointer[generation]
	// underway is the change of the masters that is under way, or nil.
	underway      atomic.Pointer[change]
	confirmations confirmations
	removals      *removals.Removals[Key]
	// holding is the era for which this proxy holds back, plus 1: no removal is paid in it while
	// the locks are moved.
	holding atomic.Int64
	// changing is held by the one that changes the masters.
	changing sync.Mutex
	// moves is the era in which this proxy moves the locks; zero: in none.
	moves atomic.Int64

	mu      sync.Mutex
	running context.Context // of Run
	rounds  uint64          // of ballots
	latest  []string        // URLs of the last Settings
	// turned is closed when Placed may return something else; nil: nobody waits for that.
	turned chan struct{}
	// id is the proxy's on the masters.
	id string
	// quorum is closed when a majority of the masters votes again; nil: nobody waits for it.
	quorum chan struct{}
	tasks  sync.WaitGroup
}

// now is the cluster with the masters that it has now.
func (c *Cluster) now() *generation { return c.current.Load() }

// MasterIs returns the name of the master that has a run_id, or an address; empty: none has.
func (c *Cluster) MasterIs(runID, addr string) string {
	g := c.now()
	for i, name := range g.names() {
		if g.guards.Guard(i).Is(runID) || name == addr {
			return name
		}
	}
	return ""
}

// HasQuorum reports whether a majority of the masters votes.
func (c *Cluster) HasQuorum() bool { return c.now().HasQuorum() }

// generation is a cluster with one set of masters. Another one follows when the masters are
// changed.
type generation struct {
	of      *Cluster
	masters []*master.Master
	// rounds are those at the masters.
	rounds master.Rounds
	// urls are those of the masters.
	urls []string
	// log goes to debug level while hushed is set: during a planned step, and once other masters
	// have followed.
	log       *slog.Logger
	hushed    *atomic.Bool
	rand      func() float64
	unguarded bool
	// guards are those of the masters.
	guards *guard.Set
	// source makes the attempts and ballots.
	source     *cell.Source
	keyspaces  sync.Map // of *keyspace, by database
	background background
	// missed is what masters may lack.
	missed missed
	// waker notifies those who wait for a key when it may be free.
	waker *wake.Waker
	// listener brings messages between proxies; it is made when first asked for.
	listener func() *messages.Listener
	// stop ends it, once it runs.
	stop context.CancelFunc
}

// background is work that begins later and ends with the cluster.
type background struct {
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// close lets nothing begin any more, and waits for what has begun.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.tasks.Wait()
}

// after calls f once d is over, unless the cluster has stopped by then.
func (g *generation) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b := &g.background
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		b.tasks.Add(1)
		b.mu.Unlock()
		defer b.tasks.Done()
		if err := contained.Run(func() error { f(); return nil }); err != nil {
			g.log.Error("a task in the background failed", "cause", err)
		}
	})
}

// change is one of the masters that is under way.
type change struct {
	// to are the names of those that follow; none: it is not known yet.
	to    []string
	began time.Time
	done  chan struct{}
}

// missed are the databases of which masters may lack something.
type missed struct {
	mu        sync.Mutex
	databases map[int]bool
}

func (m *missed) in(db int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.databases == nil {
		m.databases = map[int]bool{}
	}
	m.databases[db] = true
}

// take empties it.
func (m *missed) take() map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.databases
	m.databases = nil
	return taken
}

// confirmation is a look at the masters that some wait for.
type confirmation struct {
	done chan struct{}
	at   Placed
	err  error
}

// confirmations are those of a cluster: one at a time. Who comes while one is under way waits for
// the next.
type confirmations struct {
	mu      sync.Mutex
	next    *confirmation // nil: nobody waits for it
	working bool
}

func (s *confirmations) join(tasks *sync.WaitGroup, look func() (Placed, error)) *confirmation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &confirmation{done: make(chan struct{})}
	}
	if !s.working {
		s.working = true
		tasks.Go(func() { s.work(look) })
	}
	return s.next
}

func (s *confirmations) work(look func() (Placed, error)) {
	for {
		s.mu.Lock()
		one := s.next
		s.next, s.working = nil, one != nil
		s.mu.Unlock()
		if one == nil {
			return
		}
		one.at, one.err = look()
		close(one.done)
	}
}

// HasQuorum is Cluster.HasQuorum.
func (g *generation) HasQuorum() bool {
	return voting(g.masters) >= Majority(len(g.masters))
}

// voting is how many of them vote.
func voting(masters []*master.Master) int {
	n := 0
	for _, m := range masters {
		if m.Votes() {
			n++
		}
	}
	return n
}

// names are the addresses of the masters.
func (g *generation) names() []string { return namesIn(g.urls) }

// namesIn are the addresses in URLs.
func namesIn(urls []string) []string {
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = master.NameIn(u)
	}
	return names
}

// isWell reports whether all masters vote.
func (g *generation) isWell() bool {
	return !slices.ContainsFunc(g.masters, func(m *master.Master) bool { return !m.Votes() })
}

// isStopped waits, or reports that the cluster has stopped.
func (c *Cluster) isStopped(pause time.Duration) bool {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if running == nil {
		running = context.Background()
	}
	return pacing.Sleep(running, pause) != nil
}

// awaitQuorum is closed when a majority of the masters votes again; nil: it does now.
func (c *Cluster) awaitQuorum() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.HasQuorum():
		return nil
	case c.quorum == nil:
		c.quorum = make(chan struct{})
	}
	return c.quorum
}

// voted is called whenever a master was looked at that votes.
func (c *Cluster) voted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.quorum != nil && c.HasQuorum() {
		close(c.quorum)
		c.quorum = nil
	}
}

// Messages carries messages between the proxies of some masters, through these. It is safe for
// concurrent use.
type Messages struct {
	cluster *Cluster
	source  *messages.Source
	channel string
	deliver func(Message)
}
