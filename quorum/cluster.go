package quorum

import (
	"cmp"
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
	// onFreed notifies the waiters of a key that a command may have freed for a number of clients,
	// or Unlimited. It reports whether a waiter tries to take the key immediately.
	onFreed func(key Key, slots int) (tries bool)
	// onTaking informs the waiters of a key that a command is about to take. It calls send once to
	// send the command. The argument of send, if it is not nil, queues operations that are sent
	// together with the command.
	onTaking func(key Key, send func(afterQueueing func()))
	// messages publishes and receives the messages of clients; nil if no client can publish.
	messages *Messages
	// observeRoundTrips observes the duration of each batch; see Observe.
	observeRoundTrips func(masters []string) func(master int, duration time.Duration)
	// observeRelease observes each released lock; see ObserveReleases. It is nil if there is no
	// observer.
	observeRelease func(key Key, held time.Duration)

	activeSet atomic.Pointer[masterSet]
	// currentChange is the change of the masters, or of the location of the locks, that is in
	// progress; nil if there is none.
	currentChange atomic.Pointer[change]
	confirmations confirmations
	removals      *removals.Removals[Key]
	// pausedEra is 1 plus the last era in which this proxy paused commands for a move, or zero.
	// This proxy runs no pending removal in that era while the locks are being moved.
	pausedEra atomic.Int64
	// changeSlot holds an element while this proxy changes the masters or the location of the locks.
	changeSlot chan struct{}
	// movingEra is the era in which this proxy moves the locks; zero if it moves none.
	movingEra atomic.Int64

	mu          sync.Mutex
	runContext  context.Context // the context of Run
	ballotRound uint64          // the highest round of a ballot so far
	latestURLs  []string        // the URLs of the last LiveSettings
	// locationChanged is closed when the result of CurrentLocation may have changed; nil if no
	// goroutine waits.
	locationChanged chan struct{}
	// proxyID is the ID that this proxy uses on the masters.
	proxyID string
	// regainedSignal is closed when a majority of the masters votes again; nil if no goroutine
	// waits.
	regainedSignal chan struct{}
	tasks          sync.WaitGroup
}

// masterSet returns the set of masters that the cluster uses now.
func (c *Cluster) masterSet() *masterSet { return c.activeSet.Load() }

// MasterName returns the name of the master with this run_id or address; empty if there is none.
func (c *Cluster) MasterName(runID, addr string) string {
	set := c.masterSet()
	for i, name := range set.names() {
		if set.guards.Guard(i).HasServer(runID) || name == addr {
			return name
		}
	}
	return ""
}

// HasQuorum reports whether a majority of the masters votes.
func (c *Cluster) HasQuorum() bool { return c.masterSet().HasQuorum() }

// masterSet is one set of masters, with the registers on them. A new masterSet replaces it when the
// masters or the location of the locks change, even if the masters stay the same.
type masterSet struct {
	cluster *Cluster
	masters []*master.Master
	// rounds sends operations to the masters and collects the replies.
	rounds master.Rounds
	// urls holds the URLs of the masters, in the same order.
	urls []string
	// log writes messages below the error level at debug level while quiet is set: during a planned
	// step, and after a new set of masters has replaced this set.
	log       *slog.Logger
	quiet     *atomic.Bool
	rand      func() float64
	unguarded bool
	// guards holds the guard of each master.
	guards *guard.Set
	// source makes the IDs of attempts and ballots.
	source     *cell.Source
	databases  sync.Map // *database by number
	background backgroundTasks
	// holderChanges combines changes of the holders of the same lock.
	holderChanges holderChanges
	// databasesToCompare holds the databases in which a master may lack changes.
	databasesToCompare databaseNumbers
	// watcher notifies waiters when a key may be free.
	watcher *watch.Watcher
	// listener returns the receiver of other proxies' messages. The first call creates it.
	listener func() *messages.Listener
	// stop ends a running set.
	stop context.CancelFunc
}

// backgroundTasks runs the delayed tasks of a masterSet.
type backgroundTasks struct {
	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup
}

// close prevents further tasks, and waits for running tasks.
func (b *backgroundTasks) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.tasks.Wait()
}

// runAfter calls f once d has passed, unless the set has stopped by then.
func (set *masterSet) runAfter(d time.Duration, f func()) {
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
			set.log.Error("internal error in a background task; report this line", "cause", err)
		}
	})
}

// change is a change of the masters, or of the location of the locks, that is in progress.
type change struct {
	// newMasters holds the names of the masters after the change; empty if unknown. sameMasters is
	// set if this proxy used them before, too: the locks move, or it started with the new masters.
	newMasters  []string
	sameMasters bool
	start       time.Time
	done        chan struct{}
}

// databaseNumbers collects the numbers of databases in which a master may lack changes.
type databaseNumbers struct {
	mu      sync.Mutex
	numbers map[int]bool
}

func (m *databaseNumbers) add(db int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.numbers == nil {
		m.numbers = map[int]bool{}
	}
	m.numbers[db] = true
}

// takeAll returns the collected numbers and clears them.
func (m *databaseNumbers) takeAll() map[int]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	numbers := m.numbers
	m.numbers = nil
	return numbers
}

// confirmation is one check of the masters, shared by all callers that wait for it.
type confirmation struct {
	done     chan struct{}
	location Location
	err      error
}

// confirmations runs the checks of a cluster one at a time. A caller that arrives during a check
// waits for the next check, because the running check may have asked the masters before the call.
type confirmations struct {
	mu      sync.Mutex
	next    *confirmation // nil if no caller waits for it
	running bool
}

func (s *confirmations) join(tasks *sync.WaitGroup, check func() (Location, error)) *confirmation {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &confirmation{done: make(chan struct{})}
	}
	if !s.running {
		s.running = true
		tasks.Go(func() { s.runChecks(check) })
	}
	return s.next
}

func (s *confirmations) runChecks(check func() (Location, error)) {
	for {
		s.mu.Lock()
		current := s.next
		s.next, s.running = nil, current != nil
		s.mu.Unlock()
		if current == nil {
			return
		}
		current.location, current.err = check()
		close(current.done)
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
		names[i] = master.NameFromURL(u)
	}
	return names
}

func (set *masterSet) allVote() bool {
	return !slices.ContainsFunc(set.masters, func(m *master.Master) bool { return !m.Votes() })
}

// stoppedDuring pauses, and reports whether the cluster stopped meanwhile.
func (c *Cluster) stoppedDuring(pause time.Duration) bool {
	return pacing.Sleep(c.running(), pause) != nil
}

// running returns a context that ends when the cluster stops.
func (c *Cluster) running() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.runContext, context.Background())
}

// acquireChange waits until this proxy makes no other change of the masters or of the location of
// the locks. The caller makes its change with the returned context, and calls release afterwards.
// The wait and the context end with ctx, and when the cluster stops.
func (c *Cluster) acquireChange(ctx context.Context) (changeCtx context.Context, release func(), err error) {
	changeCtx, cancel := context.WithCancel(ctx)
	unlink := context.AfterFunc(c.running(), cancel)
	select {
	case c.changeSlot <- struct{}{}:
		return changeCtx, func() { unlink(); cancel(); <-c.changeSlot }, nil
	case <-changeCtx.Done():
		unlink()
		cancel()
		return nil, nil, context.Cause(changeCtx)
	}
}

// tryAcquireChange is like acquireChange, but does not wait.
func (c *Cluster) tryAcquireChange() (release func(), acquired bool) {
	select {
	case c.changeSlot <- struct{}{}:
		return func() { <-c.changeSlot }, true
	default:
		return nil, false
	}
}

// quorumRegained returns a channel that is closed when a majority of the masters votes again, or
// nil if a majority votes now.
func (c *Cluster) quorumRegained() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.HasQuorum():
		return nil
	case c.regainedSignal == nil:
		c.regainedSignal = make(chan struct{})
	}
	return c.regainedSignal
}

// onVote closes regainedSignal if a majority of the masters votes. Each check of a voting master
// calls onVote.
func (c *Cluster) onVote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.regainedSignal != nil && c.HasQuorum() {
		close(c.regainedSignal)
		c.regainedSignal = nil
	}
}

// Messages publishes the messages of clients on the masters, and receives the messages of other
// proxies.
// It is safe for concurrent use.
type Messages struct {
	cluster *Cluster
	source  *messages.Source
	channel string
	deliver func(Message)
}
