package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/guard"
)

// followChanges notices changes of the masters by other proxies, completes them if necessary, and
// requests a new configuration. It also aborts a move that no proxy continues.
func (c *Cluster) followChanges(ctx context.Context) {
	lastTry, lastSet, isLeaving, noticedChange := time.Time{}, (*masterSet)(nil), false, (*change)(nil)
	for !c.stoppedDuring(followPause) {
		set := c.masterSet()
		if leaving := c.IsLeavingMasters(); leaving != isLeaving {
			isLeaving = leaving
			c.notifyLocation()
		}
		if set != lastSet {
			lastTry, lastSet = time.Time{}, set
		}
		s := set.guards.Reconfiguration()
		if s == nil {
			c.forgetChange(noticedChange)
			if set.guards.IsMoveLeaseExpired() {
				c.abortExpiredMove(ctx, set)
			}
			continue
		}
		if c.currentChange.Load() == nil {
			noticedChange = c.beginChange(set, s.Change.Names)
		}
		if time.Since(lastTry) < askPause {
			continue
		}
		lastTry = time.Now()
		if c.follow(ctx, set, *s) {
			lastTry = time.Time{}
		}
	}
}

// forgetChange lets commands continue if the guards no longer know of a change that followChanges
// noticed, and no other function continues it. This happens to a proxy that starts during a change:
// it may first reach masters of the era before its own.
func (c *Cluster) forgetChange(noticedChange *change) {
	if noticedChange == nil || c.currentChange.Load() != noticedChange {
		return
	}
	release, acquired := c.tryAcquireChange()
	if !acquired {
		return
	}
	defer release()
	if c.currentChange.Load() == noticedChange {
		c.endChange(noticedChange)
	}
}

// follow takes the next step after another proxy's change. It reports whether to try again at once,
// because the step failed although the masters stay the same. Then this proxy needs no new
// configuration, and may have learned more in the meantime.
func (c *Cluster) follow(ctx context.Context, set *masterSet, s guard.Reconfiguration) (retry bool) {
	ctx, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	release, acquired := c.tryAcquireChange()
	if !acquired {
		return false
	}
	sameMasters := s.Begun && s.Era.HasMasters(set.names()) || !s.Begun && s.Change.NextEra(s.Era).HasMasters(set.names())
	var err error
	if sameMasters {
		err = c.adoptMasters(ctx, set, s, c.urlsOf(set))
	} else if !s.Begun {
		s.Change, err = set.guards.Decide(ctx, s.Era, s.Change, c.newBallot)
	}
	release()
	switch {
	case err != nil:
		c.log.Debug("another proxy is changing the masters", "cause", err)
	case !sameMasters && c.opts.OnMastersChanged != nil:
		c.opts.OnMastersChanged(s.Change.Names)
	}
	return sameMasters && err != nil
}
