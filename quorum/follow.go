package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard"
)

// followChanges notices what other proxies change, brings it to its end if need be, and asks for a
// configuration that follows.
func (c *Cluster) followChanges(ctx context.Context) {
	asked, of, departs := time.Time{}, (*generation)(nil), false
	for !c.isStopped(followPause) {
		g := c.now()
		if now := c.Departing(); now != departs {
			departs = now
			c.turn()
		}
		if g != of {
			asked, of = time.Time{}, g
		}
		s := g.guards.Succession()
		if s == nil {
			if g.guards.Lapsed() {
				c.endLapsed(ctx, g)
			}
			continue
		}
		if c.underway.Load() == nil {
			c.begin(s.Change.Names)
		}
		if time.Since(asked) < askPause {
			continue
		}
		asked = time.Now()
		if c.follow(ctx, g, *s) {
			asked = time.Time{}
		}
	}
}

// follow takes the next step after what another proxy did. It reports whether to try again at once:
// the masters stay, so nobody has to be asked for anything, and more may be known by now.
func (c *Cluster) follow(ctx context.Context, g *generation, s guard.Succession) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	if !c.changing.TryLock() {
		return false
	}
	mine := s.Begun && s.Era.Is(g.names()) || !s.Begun && s.Change.After(s.Era).Is(g.names())
	var err error
	if mine {
		err = c.followTo(ctx, g, s, c.urlsOf(g))
	} else if !s.Begun {
		s.Change, err = g.guards.Decide(ctx, s.Era, s.Change, c.ballot)
	}
	c.changing.Unlock()
	switch {
	case err != nil:
		c.log.Debug("the masters are being changed by another proxy", "cause", err)
	case !mine && c.opts.OnMastersChanged != nil:
		c.opts.OnMastersChanged(s.Change.Names)
	}
	return mine && err != nil
}
