package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// ErrNotNeeded is returned by MayVouch where a majority votes: the other masters catch up by
// themselves.
var ErrNotNeeded = errors.New("a majority of the masters votes")

// RefusedError is why an operator's override is refused.
type RefusedError struct {
	// Reasons are sentences, one for each thing that is in the way.
	Reasons []string
}

// Error joins the reasons.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// MayVouch decides whether an operator's override can be taken, by which no lock that these masters
// may have forgotten was granted for longer than ttl: every master must be reached and fit,
// and none may hold a lock that contradicts it. The findings are those of Survey. It returns nil,
// ErrNotNeeded, or a *RefusedError.
func MayVouch(findings []Finding, ttl time.Duration) error {
	var reasons []string
	votes := 0
	for _, f := range findings {
		switch {
		case f.Err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case len(f.Unsafe) > 0:
			reasons = append(reasons, f.Name+": "+strings.Join(f.Unsafe, ", "))
		case f.Locks.Outlasts(ttl):
			reasons = append(reasons, fmt.Sprintf("%s: %s", f.Name, f.locksThere()))
		}
		if f.Votes && f.Err == nil && len(f.Unsafe) == 0 {
			votes++
		}
	}
	switch {
	case votes >= Majority(len(findings)):
		return ErrNotNeeded
	case len(reasons) > 0:
		return &RefusedError{reasons}
	default:
		return nil
	}
}

// locksThere describes the locks on a master.
func (f Finding) locksThere() string {
	locks, each := fmt.Sprintf("%d locks are held there", f.Locks.Count), "one of them "
	if f.Locks.Count == 1 {
		locks, each = "1 lock is held there", ""
	}
	if f.Locks.Left < 0 {
		return locks + ", " + each + "without an end"
	}
	return fmt.Sprintf("%s, for up to %v", locks, f.Locks.Left.Round(time.Millisecond))
}

const (
	// vouchTime is how long it may take to leave the override on all masters.
	vouchTime = 30 * time.Second
	// VouchVotes is how soon masters must be able to vote for Vouch to wait for them.
	VouchVotes = 5 * time.Second
)

// Vouch leaves an operator's override on the masters in quarantine: no lock that they may have
// forgotten was granted for longer than ttl. Then they vote once such a lock is over, instead
// of after MaxTTL; or, where a proxy that lives, or a master, knows of a longer TTL in use,
// after that. It returns the state of the masters then, or why the override could not be left on
// all of them. MayVouch decides whether it may be taken.
func Vouch(ctx context.Context, opts Options, ttl time.Duration) ([]MasterStatus, error) {
	opts.Vouched, opts.FreshStart, opts.Unguarded = &ttl, false, false
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

// unboundOf names a master that neither votes, be it for others, nor waits for a known time, and why.
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
