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
	"redlock-proxy/quorum/watch"
)

// Cluster is a set of N independent Redis masters that vote on locks. It works while Run runs.
type Cluster struct {
	opts   Options
	log    *slog.Logger
	source *cell.Source
	// onFreed is called with each key that a command may have freed.
	onFreed func(Key) (tries bool)
	// onTaking is called with each key that a command is about to take. It calls send once. The
	// argument of send, if it is not nil, queues a message to leave together with the command.
	onTaking func(key Key, send func(and func()))
	// messages carries messages between proxies; nil if no client can publish.
	messages *Messages
	// roundTrips is called with the duration of each batch; see Observe.
	roundTrips func(masters []string) func(master int, took time.Duration)

	active atomic.Pointer[masterSet]
	// underway is the change of the masters that is in progress, or nil.
	underway      atomic.Pointer[change]
	confirmations confirmations
	removals      *removals.Removals[Key]
	// pausedEra is 1 plus the era in which this proxy pauses commands for a move. It runs no
	// pending removal in that era while the locks are moved.
	pausedEra atomic.Int64
	// changing is held while this proxy changes the masters.
	changing sync.Mutex
	// movingEra is the era in which this proxy moves the locks; zero if it moves none.
	movingEra atomic.Int64

	mu          sync.Mutex
	running     context.Context // the context of Run
	ballotRound uint64          // the highest round of a ballot so far
	latestURLs  []string        // the URLs of the last LiveSettings
	// locationChanged is closed when the result of Placed may change; nil if no goroutine waits.
	locationChanged chan struct{}
	// proxyID is the ID that this proxy uses on the masters.
	proxyID string
	// regained is closed when a majority of the masters votes again; nil if no goroutine waits.
	regained chan struct{}
	tasks    sync.WaitGroup
}

// masterSet returns the set of masters that the cluster uses now.
func (c *Cluster) masterSet() *masterSet { return c.active.Load() }

// MasterName returns the name of the master with this run_id or address; empty if there is none.
func (c *Cluster) MasterName(runID, addr string) string {
	set := c.masterSet()
	for i, name := range set.names() {
		if set.guards.Guard(i).Is(runID) || name == addr {
			return name
		}
	}
	return ""
}

// HasQuorum reports whether a majority of the masters votes.
func (c *Cluster) HasQuorum() bool { return c.masterSet().HasQuorum() }

// masterSet is one set of masters, with the registers on them. When the masters are changed, a new
// masterSet replaces it.
type masterSet struct {
	cluster *Cluster
	masters []*master.Master
	// rounds sends operations to the masters and collects the replies.
	rounds master.Rounds
	// urls holds the URLs of the masters, in the same order.
	urls []string
	// log writes at debug level while quiet is set: during a planned step, and after a new set of
	// masters has replaced this one.
	log       *slog.Logger
	quiet     *atomic.Bool
	rand      func() float64
	unguarded bool
	// guards holds the guard of each master.
	guards *guard.Set
	// source makes the IDs of attempts and ballots.
	source     *cell.Source
	databases  sync.Map // *database by number
	background background
	// missed holds the databases in which a master may lack changes.
	missed missedDatabases
	// watcher notifies waiters when a key may be free.
	watcher *watch.Watcher
	// listener returns the receiver of other proxies' messages. The first call creates it.
	listener func() *messages.Listener
	// stop ends the set, once it runs.
	stop context.CancelFunc
}

// background runs tasks that begin later and end with the cluster.
type background struct {
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// close starts no further task, and waits for running ones.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.tasks.Wait()
}

// after calls f after d, unless the cluster has stopped by then.
func (set *masterSet) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		b := &set.background
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		b.tasks.Add(1)
		b.mu.Unlock()
		defer b.tasks.Done()
		if err := contained.Run(func() error { f(); return nil }); err != nil {
			set.log.Error("background task failed", "cause", err)
		}
	})
}

// change is a change of the masters that is in progress.
type change struct {
	// to holds the names of the new masters; empty if unknown.
	to    []string
	began time.Time
	done  chan struct{}
}

// missedDatabases collects the numbers of databases in which a master may lack changes.
type missedDatabases struct {
	mu        sync.Mutex
	databases map[int]bool
}

func (m *missedDatabases) add(db int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.databases == nil {
		m.databases = map[int]bool{}
	}
	m.databases[db] = true
}

// take returns the collected numbers and clears them.
func (m *missedDatabases) take() map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.databases
	m.databases = nil
	return taken
}

// confirmation is one check of the masters, shared by all callers that wait for it.
type confirmation struct {
	done chan struct{}
	at   Location
	err  error
}

// confirmations runs the checks of a cluster one at a time. A caller that comes during a check
// waits for the next one.
type confirmations struct {
	mu      sync.Mutex
	next    *confirmation // nil if no caller waits for it
	working bool
}

func (s *confirmations) join(tasks *sync.WaitGroup, look func() (Location, error)) *confirmation {
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

func (s *confirmations) work(look func() (Location, error)) {
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

// HasQuorum implements Cluster.HasQuorum.
func (set *masterSet) HasQuorum() bool {
	return countVoting(set.masters) >= Majority(len(set.masters))
}

func countVoting(masters []*master.Master) int {
	n := 0
	for _, m := range masters {
		if m.Votes() {
			n++
		}
	}
	return n
}

// names returns the addresses of the masters.
func (set *masterSet) names() []string { return masterNames(set.urls) }

// masterNames returns the addresses in URLs.
func masterNames(urls []string) []string {
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = master.NameIn(u)
	}
	return names
}

func (set *masterSet) allVote() bool {
	return !slices.ContainsFunc(set.masters, func(m *master.Master) bool { return !m.Votes() })
}

// stoppedDuring waits for a pause, and reports whether the cluster stopped meanwhile.
func (c *Cluster) stoppedDuring(pause time.Duration) bool {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if running == nil {
		running = context.Background()
	}
	return pacing.Sleep(running, pause) != nil
}

// quorumRegained returns a channel that is closed when a majority of the masters votes again, or
// nil if a majority votes now.
func (c *Cluster) quorumRegained() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.HasQuorum():
		return nil
	case c.regained == nil:
		c.regained = make(chan struct{})
	}
	return c.regained
}

// onVote is called after each check of a master that votes.
func (c *Cluster) onVote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.regained != nil && c.HasQuorum() {
		close(c.regained)
		c.regained = nil
	}
}

// Messages carries messages between the proxies that share these masters. It is safe for concurrent
// use.
type Messages struct {
	cluster *Cluster
	source  *messages.Source
	channel string
	deliver func(Message)
}
