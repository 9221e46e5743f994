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
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/messages"
	"redlock-proxy/quorum/watch"
)

// newMasterSet creates a set of the masters in opts.Masters. Master i uses transports[i].
func newMasterSet(
	c *Cluster, opts Options, transports []master.Transport, joinedEra *reconfig.Era, previousGuards *guard.Set,
) *masterSet {
	set := &masterSet{
		cluster: c, urls: opts.Masters, quiet: new(atomic.Bool), rand: opts.Rand, unguarded: opts.Unguarded,
		source: c.source, stop: func() {},
	}
	set.quiet.Store(joinedEra != nil)
	set.log = slog.New(quietHandler{opts.Logger.Handler(), set.quiet})
	var guardedMasters []guard.Master
	turns := master.NewTurns(len(opts.Masters))
	for i, u := range opts.Masters {
		m := master.New(master.NameFromURL(u), transports[i], turns, set.log, opts.Rand)
		set.masters, guardedMasters = append(set.masters, m), append(guardedMasters, m.GuardMaster())
	}
	set.guards = guard.NewSet(guard.Options{
		MaxTTL: opts.MaxTTL, FreshStart: opts.FreshStart, Override: opts.Override, Forced: opts.Forced,
		Off: opts.Unguarded, TimeSinceBoot: opts.timeSinceBoot, Settings: opts.Settings,
		Record: opts.Record, JoinedEra: joinedEra, FormerSet: previousGuards, ID: c.proxyID, Name: opts.Name,
		MoveEra: func() int { return int(c.movingEra.Load()) }, InUse: func() bool { return c.masterSet() == set },
		Logger: set.log,
	}, guardedMasters)
	watchOptions := watch.Options{
		Quorum: Majority(len(set.masters)), ReplyTimeout: max(opts.Access.Timeout, watchTimeout),
		Logger: set.log, Rand: opts.Rand, HasExpiries: keygroup.HasExpiries,
	}
	for i, m := range set.masters {
		m.SetGuard(set.guards.Guard(i))
		m.OnVote = c.onVote
		watchOptions.Servers = append(watchOptions.Servers, m)
	}
	set.watcher = watch.New(watchOptions)
	set.listener = sync.OnceValue(func() *messages.Listener { return messages.New(set.listenerOptions()) })
	return set
}

// watchTimeout is the least time limit for a master's reply on the connection of a watch.
const watchTimeout = 500 * time.Millisecond

// run runs the set until ctx ends, and then sends the queued operations, including undos.
func (set *masterSet) run(ctx context.Context) {
	defer context.AfterFunc(ctx, set.watcher.Close)()
	defer context.AfterFunc(ctx, func() { set.listener().Close() })()
	var wg sync.WaitGroup
	for _, m := range set.masters {
		wg.Go(func() { m.Run(ctx) })
	}
	wg.Go(func() { set.compareMissed(ctx) })
	wg.Wait()
	set.watcher.Close()
	set.listener().Close()
	set.background.close()
}

func newTransports(opts Options, urls []string) ([]master.Transport, error) {
	var transports []master.Transport
	for _, u := range urls {
		t, err := master.NewTransport(u, opts.Access)
		if err != nil {
			return nil, fmt.Errorf("master %s: %w", master.NameFromURL(u), err)
		}
		transports = append(transports, t)
	}
	return transports, nil
}

// start runs a set of masters until the cluster stops or halt is called. Before Run it does
// nothing.
func (c *Cluster) start(set *masterSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runContext == nil {
		return // Run will start the set.
	}
	ctx, stop := context.WithCancel(c.runContext)
	set.stop = stop
	c.tasks.Go(func() { defer stop(); set.run(ctx) })
}

// halt ends a set of masters.
func (c *Cluster) halt(set *masterSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set.stop()
}
