package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/legacy"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/vote"
)

// Majority is the least number of n masters of which any two such sets share one:
// ⌊n/2⌋+1.
func Majority(n int) int { return vote.Majority(n) }

// Cluster is N independent Redis masters that vote. It works while Run runs.
type Cluster struct {
	masters []*master.Master
	// legacy is the legacy server, if there is one.
	legacy    *legacy.Server
	log       *slog.Logger
	rand      func() float64
	unguarded bool
	// guards are those of the masters.
	guards *guard.Set
	// source makes the attempts and ballots.
	source     *cell.Source
	keyspaces  sync.Map // of *keyspace, by database
	background background
	// freed is told of keys that may have been freed.
	freed func(Key)
}

// NewCluster makes a cluster. It connects to nothing before Run.
func NewCluster(opts Options) (*Cluster, error) {
	if len(opts.Masters) == 0 {
		return nil, errors.New("quorum: no masters")
	}
	opts.setDefaults()
	var transports []master.Transport
	for _, u := range opts.servers() {
		t, err := master.NewTransport(u, opts.MasterTimeout, opts.TLS)
		if err != nil {
			return nil, fmt.Errorf("quorum: master %s: %w", masterName(u), err)
		}
		transports = append(transports, t)
	}
	return newCluster(opts, transports), nil
}

// newCluster takes one transport for each of opts.servers().
func newCluster(opts Options, transports []master.Transport) *Cluster {
	n := len(opts.Masters)
	c := &Cluster{
		log: opts.Logger, rand: opts.Rand, unguarded: opts.Unguarded,
		source: cell.NewSource(), freed: func(Key) {},
	}
	for i, u := range opts.servers() {
		m := master.New(masterName(u), transports[i], opts.Logger, opts.Rand)
		if i < n {
			c.masters = append(c.masters, m)
		} else {
			c.legacy = &legacy.Server{Master: m}
		}
	}
	c.guardMasters(opts)
	return c
}

func (c *Cluster) guardMasters(opts Options) {
	var masters []guard.Master
	for _, m := range c.masters {
		masters = append(masters, m.Guarded())
	}
	c.guards = guard.NewSet(guard.Options{
		MaxTTL: opts.MaxTTL, FreshStart: opts.FreshStart, Vouched: opts.Vouched, Off: opts.Unguarded, SinceBoot: opts.sinceBoot, Logger: opts.Logger,
	}, masters)
	for i, m := range c.masters {
		m.GuardWith(c.guards.Guard(i))
	}
}

// Run connects to the masters and works until ctx ends; then it sends what is
// queued, undos included, and returns nil.
func (c *Cluster) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, m := range c.servers() {
		wg.Go(func() { m.Run(ctx) })
	}
	wg.Wait()
	c.background.close()
	return nil
}

// servers are the masters and, after them, the legacy server if there is one.
func (c *Cluster) servers() []*master.Master {
	if c.legacy == nil {
		return c.masters
	}
	return append(slices.Clip(c.masters), c.legacy.Master)
}

// Ready waits until all masters vote, or ctx ends, so that the first locks stand on
// all of them. It reports whether a majority votes.
func (c *Cluster) Ready(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	servers := c.servers()
	for ctx.Err() == nil && voting(servers) < len(servers) {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return c.HasQuorum()
}

// FreshStartTime is how long a fresh start takes, at the least.
const FreshStartTime = guard.FreshStartTime

// StartsFresh reports whether a fresh start is under way: masters wait whether a proxy that
// knows of locks objects.
func (c *Cluster) StartsFresh() bool {
	return slices.ContainsFunc(c.masters, func(m *master.Master) bool {
		why := m.Health().Quarantine
		return why != nil && why.Why == guard.AwaitsFreshStart
	})
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
