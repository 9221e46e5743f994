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

// newCluster takes one transport for each of opts.Masters.
func newCluster(opts Options, transports []master.Transport) *Cluster {
	c := &Cluster{opts: opts, log: opts.Logger, source: cell.NewSource(), id: guard.NewID(), freed: func(Key) bool { return false }, taking: func(_ Key, send func(func())) { send(nil) }}
	c.removals = removals.New(removals.Options[Key]{Pay: c.pay, Ready: c.HasQuorum, Size: func(k Key) int { return len(k.Name) + len(k.Tag) }})
	c.current.Store(newGeneration(c, opts, transports, nil, nil))
	return c
}

// Run connects to the masters and works until ctx ends; then it pays the removals that are owed, if
// that can be done soon, sends what is queued, undos included, and returns nil.
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

// Ready waits until all masters vote, or ctx ends, so that the first locks are on
// all of them. It reports whether a majority votes.
func (c *Cluster) Ready(ctx context.Context) bool {
	for masters := c.now().masters; voting(masters) < len(masters) && pacing.Sleep(ctx, 5*time.Millisecond) == nil; {
		masters = c.now().masters
	}
	return c.HasQuorum()
}

// FreshStartTime is how long a fresh start takes, at the least.
const FreshStartTime = guard.FreshStartTime
