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
	// vouchTime is how long it may take to leave the override on all masters.
	vouchTime = 30 * time.Second
	// VouchVotes is how soon masters must be able to vote for Vouch to wait for them.
	VouchVotes = 5 * time.Second
)

// Vouch leaves an operator's override on the masters in quarantine: no lock that they may have
// forgotten was granted for longer than ttl. Then they vote once such a lock is over, instead of
// after MaxTTL; or, where a proxy that lives, or a master, knows of a longer TTL in use, after
// that. It returns the state of the masters then, or why the override could not be left on all of
// them. MayVouch decides whether it may be taken. Forced: whatever proxies or masters know of.
func Vouch(ctx context.Context, opts Options, ttl time.Duration, forced bool) ([]MasterStatus, error) {
	opts.Vouched, opts.Forced, opts.FreshStart, opts.Unguarded = &ttl, forced, false, false
	cluster, err := NewCluster(opts)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { _ = cluster.Run(running) })
	defer done.Wait()
	defer stop()
	if err := cluster.untilBound(ctx); err != nil {
		return nil, err
	}
	if wait := longestWait(cluster.Status()); wait < VouchVotes {
		soon, cancel := context.WithTimeout(ctx, 2*VouchVotes)
		defer cancel()
		cluster.Ready(soon)
	}
	return cluster.Status(), nil
}

// untilBound waits until each master votes, or is in a quarantine of which the end is known.
func (c *Cluster) untilBound(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, vouchTime)
	defer cancel()
	for {
		switch unbound := unboundOf(c.Status()); {
		case unbound == "":
			return nil
		case pacing.Sleep(ctx, 10*time.Millisecond) != nil:
			return fmt.Errorf("it could not be left on all masters: %s", unbound)
		}
	}
}

// unboundOf names a master that neither votes, be it for others, nor waits for a known time, and
// why.
func unboundOf(masters []MasterStatus) string {
	for _, m := range masters {
		switch q := m.Quarantine; {
		case m.Err != nil:
			return m.Name + ": " + master.CauseText(m.Err)
		case q != nil && q.Why != guard.OtherRules && (q.Ready.IsZero() || q.Assumed):
			return m.Name + ": " + q.Error()
		}
	}
	return ""
}

// longestWait is how long it takes until all masters vote.
func longestWait(masters []MasterStatus) time.Duration {
	longest := time.Duration(0)
	for _, m := range masters {
		if m.Quarantine != nil {
			longest = max(longest, m.Quarantine.Left())
		}
	}
	return longest
}
