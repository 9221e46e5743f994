package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/internal/pacing"
)

const (
	// changePatience is how long a command waits while the masters are changed.
	changePatience = 5 * time.Second
	// noticeTime is how long it takes at the most until a vote that did not count is known to be
	// because of a change.
	noticeTime = 100 * time.Millisecond
)

// settled is the cluster with the masters that it has, once no change is under way; none is waited
// for for longer than changePatience in all.
func (c *Cluster) settled(ctx context.Context, until time.Time) (*generation, error) {
	u := c.underway.Load()
	if u == nil {
		return c.now(), nil
	}
	if limit := u.began.Add(changePatience); limit.Before(until) {
		until = limit
	}
	select {
	case <-u.done:
		return c.now(), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(time.Until(until)):
		return nil, c.named(c.now().absence())
	}
}

// on does something with the masters of now, once no change is under way.
func on[T any](ctx context.Context, c *Cluster, do func(*generation) (T, error)) (T, error) {
	g, err := c.settled(ctx, time.Now().Add(changePatience))
	if err != nil {
		var none T
		return none, err
	}
	got, err := do(g)
	return got, c.named(err)
}

// onWhich is on for what has changed nothing after an error, or finds what it has changed: it is
// done again where the masters are changed meanwhile.
func onWhich[T any](ctx context.Context, c *Cluster, do func(*generation) (T, error)) (T, error) {
	until := time.Now().Add(changePatience)
	for {
		g, err := c.settled(ctx, until)
		if err != nil {
			var none T
			return none, err
		}
		got, err := do(g)
		if err == nil || !c.wasChanged(ctx, g, err) || time.Now().After(until) {
			return got, c.named(err)
		}
	}
}

// wasChanged reports whether a command had no quorum because the masters are being changed.
func (c *Cluster) wasChanged(ctx context.Context, g *generation, err error) bool {
	var none *NoQuorumError
	if !errors.As(err, &none) {
		return false
	}
	for until := time.Now().Add(noticeTime); ; {
		over := g.guards.Succession() != nil
		switch {
		case c.underway.Load() != nil, c.now() != g:
			return true
		case !over && !none.isUnproven() || time.Now().After(until) || pacing.Sleep(ctx, time.Millisecond) != nil:
			return false
		}
	}
}

// named has an error say that the masters are being changed, if so.
func (c *Cluster) named(err error) error {
	u := c.underway.Load()
	if u == nil || err == nil {
		return err
	}
	if none, ok := errors.AsType[*NoQuorumError](err); ok {
		none.Changed, none.ChangedTo = true, u.to
	}
	return err
}
