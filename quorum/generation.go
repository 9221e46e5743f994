package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/guard/reconfig"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/wake"
)

// newGeneration takes one transport for each of the masters.
func newGeneration(c *Cluster, opts Options, transports []master.Transport, joins *reconfig.Era, follows *guard.Set) *generation {
	g := &generation{
		of: c, urls: opts.Masters, hushed: new(atomic.Bool), rand: opts.Rand, unguarded: opts.Unguarded,
		source: c.source, stop: func() {},
	}
	g.hushed.Store(joins != nil)
	g.log = slog.New(hush{opts.Logger.Handler(), g.hushed})
	var guarded []guard.Master
	turns := master.NewTurns(len(opts.Masters))
	for i, u := range opts.Masters {
		m := master.New(master.NameIn(u), transports[i], turns, g.log, opts.Rand)
		g.masters, guarded = append(g.masters, m), append(guarded, m.Guarded())
	}
	g.guards = guard.NewSet(guard.Options{
		MaxTTL: opts.MaxTTL, FreshStart: opts.FreshStart, Vouched: opts.Vouched, Forced: opts.Forced, Off: opts.Unguarded, SinceBoot: opts.sinceBoot, Settings: opts.Settings,
		Record: opts.Record, Joins: joins, Follows: follows, ID: c.id, Name: opts.Name, Moves: func() int { return int(c.moves.Load()) }, Logger: g.log,
	}, guarded)
	watched := wake.Options{Quorum: Majority(len(g.masters)), Patience: max(opts.MasterTimeout, watchPatience), Logger: g.log, Rand: opts.Rand}
	for i, m := range g.masters {
		m.GuardWith(g.guards.Guard(i))
		m.Voted = c.voted
		watched.Servers = append(watched.Servers, m)
	}
	g.waker = wake.New(watched)
	g.listener = sync.OnceValue(func() *messages.Listener { return messages.New(g.listening()) })
	return g
}

// watchPatience is how long a watch of a master may take to answer, at the least.
const watchPatience = 500 * time.Millisecond

// run works until ctx ends; then it sends what is queued, undos included.
func (g *generation) run(ctx context.Context) {
	defer context.AfterFunc(ctx, g.waker.Close)()
	defer context.AfterFunc(ctx, func() { g.listener().Close() })()
	var wg sync.WaitGroup
	for _, m := range g.masters {
		wg.Go(func() { m.Run(ctx) })
	}
	wg.Go(func() { g.compareMissed(ctx) })
	wg.Wait()
	g.waker.Close()
	g.listener().Close()
	g.background.close()
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

// halt ends a generation.
func (c *Cluster) halt(g *generation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.stop()
}
