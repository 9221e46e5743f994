package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/internal/pacing"
)

const (
	// changeTimeout is the longest time that a command waits while the masters are changed.
	changeTimeout = 5 * time.Second
	// noticeTime limits the wait until this proxy notices that a vote did not count because of a
	// change.
	noticeTime = 100 * time.Millisecond
)

// stableSet returns the current masters once no change is in progress. It waits until the given
// time, but at most for changeTimeout after the start of the change.
func (c *Cluster) stableSet(ctx context.Context, endTime time.Time) (*masterSet, error) {
	u := c.currentChange.Load()
	if u == nil {
		return c.masterSet(), nil
	}
	if limit := u.start.Add(changeTimeout); limit.Before(endTime) {
		endTime = limit
	}
	select {
	case <-u.done:
		return c.masterSet(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Until(endTime)):
		return nil, c.withChange(c.masterSet().missingVotes())
	}
}

// withSet calls f with the current masters, once no change is in progress.
func withSet[T any](ctx context.Context, c *Cluster, f func(*masterSet) (T, error)) (T, error) {
	set, err := c.stableSet(ctx, time.Now().Add(changeTimeout))
	if err != nil {
		var zero T
		return zero, err
	}
	got, err := f(set)
	return got, c.withChange(err)
}

// withSetRepeated does the same as withSet, for functions that can be repeated after an error. It
// repeats f if the masters are changed meanwhile.
func withSetRepeated[T any](ctx context.Context, c *Cluster, f func(*masterSet) (T, error)) (T, error) {
	until := time.Now().Add(changeTimeout)
	for {
		set, err := c.stableSet(ctx, until)
		if err != nil {
			var zero T
			return zero, err
		}
		got, err := f(set)
		if err == nil || !c.wasChanged(ctx, set, err) || time.Now().After(until) {
			return got, c.withChange(err)
		}
	}
}

// wasChanged reports whether a command had no quorum because the masters are being changed, or were
// changed meanwhile.
func (c *Cluster) wasChanged(ctx context.Context, set *masterSet, err error) bool {
	var noQuorum *NoQuorumError
	if !errors.As(err, &noQuorum) {
		return false
	}
	for until := time.Now().Add(noticeTime); ; {
		isReplaced := set.guards.Reconfiguration() != nil
		switch {
		case c.currentChange.Load() != nil, c.masterSet() != set:
			return true
		case !isReplaced && !noQuorum.hasUnexplainedQuarantine() || time.Now().After(until) || pacing.Sleep(ctx, time.Millisecond) != nil:
			return false
		}
	}
}

// withChange returns err. If err is a *NoQuorumError and a change is in progress, withChange
// records the change in err.
func (c *Cluster) withChange(err error) error {
	u := c.currentChange.Load()
	if u == nil || err == nil {
		return err
	}
	if noQuorum, ok := errors.AsType[*NoQuorumError](err); ok {
		noQuorum.Changed, noQuorum.SameMasters, noQuorum.NewMasters = true, u.sameMasters, u.newMasters
		// A proxy may learn of the change before it learns the names.
		if s := c.masterSet().guards.Reconfiguration(); len(u.newMasters) == 0 && s != nil {
			noQuorum.NewMasters = s.Change.Names
		}
	}
	return err
}
