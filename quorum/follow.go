package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard"
)

// followChanges notices changes of the masters by other proxies, completes them if necessary, and
// requests a new configuration.
func (c *Cluster) followChanges(ctx context.Context) {
	asked, lastSet, departs, noticed := time.Time{}, (*masterSet)(nil), false, (*change)(nil)
	for !c.stoppedDuring(followPause) {
		set := c.masterSet()
		if departing := c.IsLeavingMasters(); departing != departs {
			departs = departing
			c.notifyLocation()
		}
		if set != lastSet {
			asked, lastSet = time.Time{}, set
		}
		s := set.guards.Succession()
		if s == nil {
			c.forgetChange(noticed)
			if set.guards.Lapsed() {
				c.abortLapsedMove(ctx, set)
			}
			continue
		}
		if c.underway.Load() == nil {
			noticed = c.beginChange(s.Change.Names)
		}
		if time.Since(asked) < askPause {
			continue
		}
		asked = time.Now()
		if c.follow(ctx, set, *s) {
			asked = time.Time{}
		}
	}
}

// forgetChange lets commands continue if a change that followChanges noticed is no longer known, and
// no other function continues it: a proxy that starts during a change may first meet masters of the
// era before its own.
func (c *Cluster) forgetChange(noticed *change) {
	if noticed == nil || c.underway.Load() != noticed || !c.changing.TryLock() {
		return
	}
	defer c.changing.Unlock()
	if c.underway.Load() == noticed {
		c.endChange(noticed)
	}
}

// follow takes the next step after another proxy's change. It reports whether to try again at once:
// if the masters stay the same, no configuration is needed, and this proxy may know more by now.
func (c *Cluster) follow(ctx context.Context, set *masterSet, s guard.Succession) (again bool) {
	ctx, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	if !c.changing.TryLock() {
		return false
	}
	mine := s.Begun && s.Era.Is(set.names()) || !s.Begun && s.Change.After(s.Era).Is(set.names())
	var err error
	if mine {
		err = c.followTo(ctx, set, s, c.urlsOf(set))
	} else if !s.Begun {
		s.Change, err = set.guards.Decide(ctx, s.Era, s.Change, c.ballot)
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
