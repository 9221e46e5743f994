package quorum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

const (
	// overrideTimeout is the time limit for storing the override on all masters.
	overrideTimeout = 30 * time.Second
	// OverrideVoteTime decides whether StoreOverride waits until the masters vote: it waits if
	// they vote within this time.
	OverrideVoteTime = 5 * time.Second
)

// StoreOverride stores an operator's override on the masters in quarantine: no lock that they may
// have lost had a TTL longer than ttl. Then these masters vote after ttl instead of MaxTTL. If a
// running proxy or a master knows of a longer TTL in use, the masters vote after that longer TTL,
// unless forced is set. StoreOverride returns the state of the masters afterwards, or an error if
// it could not store the override on all masters. inspect.CheckOverride decides whether an override
// is allowed.
func StoreOverride(ctx context.Context, opts Options, ttl time.Duration, forced bool) ([]MasterStatus, error) {
	opts.Override, opts.Forced, opts.FreshStart, opts.Unguarded = &ttl, forced, false, false
	cluster, err := NewCluster(opts)
	if err != nil {
		return nil, err
	}
	runCtx, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = cluster.Run(runCtx) })
	defer tasks.Wait()
	defer stop()
	if err := cluster.awaitOverride(ctx); err != nil {
		return nil, err
	}
	if wait := longestWait(cluster.Status()); wait < OverrideVoteTime {
		readyCtx, cancel := context.WithTimeout(ctx, 2*OverrideVoteTime)
		defer cancel()
		cluster.WaitReady(readyCtx)
	}
	return cluster.Status(), nil
}

// awaitOverride waits until each master votes, or is in a quarantine that ends at a known time.
func (c *Cluster) awaitOverride(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, overrideTimeout)
	defer cancel()
	for {
		switch missing := describeMissingOverride(c.Status()); {
		case missing == "":
			return nil
		case pacing.Sleep(ctx, 10*time.Millisecond) != nil:
			return fmt.Errorf("the override could not be stored on all masters: %s", missing)
		}
	}
}

// describeMissingOverride names a master that is down, or whose quarantine has no known end or
// assumes MaxTTL, with the cause. A quarantine because of the rules of other proxies does not
// matter. The text is empty if there is no such master.
func describeMissingOverride(masters []MasterStatus) string {
	for _, m := range masters {
		switch q := m.Quarantine; {
		case m.Err != nil:
			return m.Name + ": " + master.CauseText(m.Err)
		case q != nil && q.Cause != guard.ReasonDifferentRules && (q.ReadyAt.IsZero() || q.AssumesMaxTTL):
			return m.Name + ": " + q.Error()
		}
	}
	return ""
}

// longestWait returns the time until the last quarantine ends.
func longestWait(masters []MasterStatus) time.Duration {
	longest := time.Duration(0)
	for _, m := range masters {
		if m.Quarantine != nil {
			longest = max(longest, m.Quarantine.TimeLeft())
		}
	}
	return longest
}
