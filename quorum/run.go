package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/removals"
)

// NewCluster creates a cluster. It connects to no master before Run.
func NewCluster(opts Options) (*Cluster, error) {
	if len(opts.Masters) == 0 {
		return nil, errors.New("quorum: no masters")
	}
	opts.setDefaults()
	transports, err := newTransports(opts, opts.Masters)
	if err != nil {
		return nil, err
	}
	return newCluster(opts, transports), nil
}

// newCluster creates a cluster of the masters in opts.Masters. Master i uses transports[i].
func newCluster(opts Options, transports []master.Transport) *Cluster {
	c := &Cluster{
		opts: opts, log: opts.Logger, source: cell.NewSource(), proxyID: guard.NewID(),
		changeSlot: make(chan struct{}, 1),
		onFreed:    func(Key, int) bool { return false },
		onTaking:   func(_ Key, send func(func())) { send(nil) },
	}
	c.removals = removals.New(removals.Options[Key]{
		Remove: c.removePending, IsReady: c.HasQuorum, Size: func(k Key) int { return len(k.Name) + len(k.Tag) + len(k.Holder) },
	})
	c.activeSet.Store(newMasterSet(c, opts, transports, nil, nil))
	return c
}

// Run connects to the masters and works until ctx ends. Then it carries out the pending removals,
// for at most removals.AttemptTime, if a majority votes. It sends the queued operations, including
// undos, and returns nil.
func (c *Cluster) Run(ctx context.Context) error {
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	c.mu.Lock()
	c.runContext = runCtx
	c.mu.Unlock()
	c.start(c.masterSet())
	c.tasks.Go(func() { c.removals.Run(runCtx, &c.tasks) })
	c.tasks.Go(func() { c.followChanges(ctx) })
	if c.opts.Record != nil {
		c.tasks.Go(func() { c.keepRecord(ctx) })
	}
	<-ctx.Done()
	if c.HasQuorum() {
		finalCtx, cancel := context.WithTimeout(runCtx, removals.AttemptTime)
		_ = c.removals.WaitAll(finalCtx)
		cancel()
	}
	stop()
	// From now on no other function can start a set of masters. A change that is in progress ends soon,
	// because its context has ended.
	c.changeSlot <- struct{}{}
	defer func() { <-c.changeSlot }()
	c.tasks.Wait()
	return nil
}

// WaitReady waits until all masters vote, so that all of them get the first locks, or until ctx
// ends. It reports whether a majority votes.
func (c *Cluster) WaitReady(ctx context.Context) bool {
	masters := c.masterSet().masters
	for countVoting(masters) < len(masters) && pacing.Sleep(ctx, 5*time.Millisecond) == nil {
		masters = c.masterSet().masters
	}
	return c.HasQuorum()
}

// FreshStartTime is the minimum duration of a fresh start.
const FreshStartTime = guard.FreshStartTime
