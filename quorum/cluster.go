package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/removals"
	"redlock-proxy/quorum/vote"
)

// Majority is the least number of n masters of which any two such sets share one:
// ⌊n/2⌋+1.
func Majority(n int) int { return vote.Majority(n) }

// FreshStartTime is how long a fresh start takes, at the least.
const FreshStartTime = guard.FreshStartTime

// Cluster is N independent Redis masters that vote. It works while Run runs.
type Cluster struct {
	opts   Options
	log    *slog.Logger
	source *cell.Source
	// freed is called with keys that may have been freed.
	freed func(Key) (tries bool)
	// taking is called with keys that are about to be taken, by send, which calls what it gets, unless that is nil, for what is to leave with that.
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
	// holding is the era for which this proxy holds back, plus 1: no removal is paid in it while the locks are moved.
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

// NewCluster makes a cluster. It connects to nothing before Run.
func NewCluster(opts Options) (*Cluster, error) {
	if len(opts.Masters) == 0 {
		return nil, errors.New("quorum: no masters")
	}
	opts.setDefaults()
	transports, err := transportsTo(opts, opts.Masters)
	if err != nil {
		return nil, err
	}
	return newCluster(opts, transports), nil
}

func transportsTo(opts Options, urls []string) ([]master.Transport, error) {
	var transports []master.Transport
	for _, u := range urls {
		t, err := master.NewTransport(u, opts.MasterTimeout, opts.TLS)
		if err != nil {
			return nil, fmt.Errorf("quorum: master %s: %w", master.NameIn(u), err)
		}
		transports = append(transports, t)
	}
	return transports, nil
}

// newCluster takes one transport for each of opts.Masters.
func newCluster(opts Options, transports []master.Transport) *Cluster {
	c := &Cluster{opts: opts, log: opts.Logger, source: cell.NewSource(), id: guard.NewID(), freed: func(Key) bool { return false }, taking: func(_ Key, send func(func())) { send(nil) }}
	c.removals = removals.New(removals.Options[Key]{Pay: c.pay, Ready: c.HasQuorum, Size: func(k Key) int { return len(k.Name) + len(k.Tag) }})
	c.current.Store(newGeneration(c, opts, transports, nil, nil))
	return c
}

// now is the cluster with the masters that it has now.
func (c *Cluster) now() *generation { return c.current.Load() }

// Run connects to the masters and works until ctx ends; then it pays the removals that are owed, if that can be done soon, sends what is
// queued, undos included, and returns nil.
func (c *Cluster) Run(ctx context.Context) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c.mu.Lock()
	c.running = running
	c.mu.Unlock()
	c.start(c.now())
	c.tasks.Go(func() { c.removals.Run(running, &c.tasks) })
	c.tasks.Go(func() { c.followChanges(ctx) })
	if c.opts.Record != nil {
		c.tasks.Go(func() { c.keepRecord(ctx) })
	}
	<-ctx.Done()
	if c.HasQuorum() {
		last, cancel := context.WithTimeout(running, removals.PaymentTime)
		_ = c.removals.Settle(last)
		cancel()
	}
	stop()
	c.changing.Lock() // nothing is started any more
	defer c.changing.Unlock()
	c.tasks.Wait()
	return nil
}

// start has a generation work for as long as the cluster does, or until it is stopped.
func (c *Cluster) start(g *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return // Run will start it
	}
	ctx, stop := context.WithCancel(c.running)
	g.stop = stop
	c.tasks.Go(func() { defer stop(); g.run(ctx) })
}

// Ready waits until all masters vote, or ctx ends, so that the first locks are on
// all of them. It reports whether a majority votes.
func (c *Cluster) Ready(ctx context.Context) bool {
	for masters := c.now().masters; voting(masters) < len(masters) && pacing.Sleep(ctx, 5*time.Millisecond) == nil; {
		masters = c.now().masters
	}
	return c.HasQuorum()
}

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

// StartsFresh reports whether a fresh start is under way: masters wait whether a proxy that
// knows of locks objects.
func (c *Cluster) StartsFresh() bool { return c.now().StartsFresh() }

// HasQuorum reports whether a majority of the masters votes.
func (c *Cluster) HasQuorum() bool { return c.now().HasQuorum() }

// Status returns the state of each master, in the order of Options.Masters.
func (c *Cluster) Status() []MasterStatus { return c.now().Status() }

// Observe has what f makes of the names of the masters called with how long each batch took that a master
// answered, from its sending on; masters are numbered as in Status. f is called for the masters of now, and
// whenever others follow. What it makes must not wait. Observe is called before Run.
func (c *Cluster) Observe(f func(masters []string) func(master int, took time.Duration)) {
	c.roundTrips = f
	c.now().observe(f)
}

// Take takes keys that nobody holds and returns with the majority.
//
// Errors: *OwnKeyError, as of all methods, ErrHeld, ErrTooShort, ErrContended, *NoQuorumError, or
// the cause of ctx; with a fence also ErrFences and ErrFenceShared. After an error nothing is held: what may have been taken is removed in the
// background, unless it Stays.
func (c *Cluster) Take(ctx context.Context, t Taking) (Grant, error) {
	return onWhich(ctx, c, func(g *generation) (Grant, error) { return g.Take(ctx, t) })
}

// Release removes the key if it holds the token.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrContended, *NoQuorumError
// when it cannot be known, or the cause of ctx; what was begun goes on all the same.
func (c *Cluster) Release(ctx context.Context, key Key, token string) error {
	asked := false
	_, err := on(ctx, c, func(g *generation) (struct{}, error) {
		asked = true
		return struct{}{}, g.Release(ctx, key, token)
	})
	if !asked { // the masters are being changed
		if version, left := c.now().keyspace(key.DB).Forget(key.Name, token); version != "" {
			c.owe(key, version, left, nil)
		}
	}
	return err
}

// Extend gives a key that holds the token a lease of ttl (whole milliseconds, or Endless)
// from now, unless the one that it has is longer.
//
// Errors: ErrNotHeld (as *InsteadError where the current value is known), ErrTooShort, ErrContended,
// *NoQuorumError when it cannot be known, or the cause of ctx.
func (c *Cluster) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (Grant, error) {
	return onWhich(ctx, c, func(g *generation) (Grant, error) { return g.Extend(ctx, key, token, ttl) }) // twice is as once
}

// Read returns the current values of keys of one database.
//
// Errors: ErrContended, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Read(ctx context.Context, keys []Key) ([]Look, error) {
	return onWhich(ctx, c, func(g *generation) ([]Look, error) { return g.Read(ctx, keys) })
}

// Update makes a change of one key that depends on its current value; run may be called
// several times, and Outcome.Decision is the one that holds. If expect is not
// nil, run changes nothing where the key holds another value.
//
// Errors: those of run, ErrForeign, ErrContended, *NoQuorumError, or the cause of ctx; after
// the last two the change is made once at any later moment, or never.
func (c *Cluster) Update(ctx context.Context, key Key, expect *string, run func(Look) (Decision, error)) (Outcome, error) {
	return on(ctx, c, func(g *generation) (Outcome, error) { return g.Update(ctx, key, expect, run) })
}

// UpdateAll is Update of several keys of one cell, by one vote: run gets them in their order, and decides
// in the same. If expect is not nil, there is one key.
//
// Errors: those of Update, and bag.ErrTooLarge.
func (c *Cluster) UpdateAll(ctx context.Context, keys []Key, expect *string, run func([]Look) ([]Decision, error)) (Outcome, error) {
	return on(ctx, c, func(g *generation) (Outcome, error) { return g.UpdateAll(ctx, keys, expect, run) })
}

// Remove takes a lock from whoever holds it, by ballot, and reports whether anybody did.
//
// Errors: those of Update.
func (c *Cluster) Remove(ctx context.Context, key Key) (bool, error) {
	return on(ctx, c, func(g *generation) (bool, error) { return g.Remove(ctx, key) })
}

// Fence is not below the fence of any lock of the key that was granted in the last seven days; 0
// where there was none.
//
// Errors: *OwnKeyError, *NoQuorumError, or the cause of ctx.
func (c *Cluster) Fence(ctx context.Context, key Key) (int64, error) {
	return on(ctx, c, func(g *generation) (int64, error) { return g.Fence(ctx, key) })
}

// Holdings returns what the masters hold under keys of one database, and changes nothing.
//
// Errors: *NoQuorumError where no master answered, *OwnKeyError, or the cause of ctx.
func (c *Cluster) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	return on(ctx, c, func(g *generation) ([]Holding, error) { return g.Holdings(ctx, keys) })
}

// Names passes on names of keys of a database, a page of some hundred at a time, as long as page asks
// for more. Every lock that a majority holds all the while is among them; others may be, and some
// more than once.
//
// Errors: that of page, *NoQuorumError where no majority can be asked, or the cause of ctx.
func (c *Cluster) Names(ctx context.Context, db int, page func(names []string) (more bool, err error)) error {
	_, err := on(ctx, c, func(g *generation) (struct{}, error) { return struct{}{}, g.Names(ctx, db, page) })
	return err
}

// Databases returns the numbers of databases, in their order. Every one with a lock that a majority holds all
// the while is among them, and database 0.
//
// Errors: *NoQuorumError where no majority can be asked, or the cause of ctx.
func (c *Cluster) Databases(ctx context.Context) ([]int, error) {
	return on(ctx, c, func(g *generation) ([]int, error) { return g.Databases(ctx) })
}

// Guess is the token under which this proxy has taken the key, or else what it has just put there, if it knows of
// nothing newer.
func (c *Cluster) Guess(key Key) (token string, ok bool) { return c.now().Guess(key) }

// Withdraw takes back, in the background, what a Take or an Update granted of these keys: that alone, whatever they hold by now.
func (c *Cluster) Withdraw(keys []Key, got Grant) {
	lease := got.Validity
	if lease >= 0 {
		lease += lease/50 + time.Second // what was given up for clocks
	}
	for _, key := range keys {
		c.owe(key, got.Version, lease, nil)
	}
}
