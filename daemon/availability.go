package daemon

import (
	"context"
	"errors"
	"strings"
	"time"

	"redlock-proxy/conf"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/place"
)

// HasPlaces reports whether the masters say where the locks of a proxy are; else they are at the
// masters.
func HasPlaces(cfg conf.Config) bool { return cfg.Guard && len(cfg.LockKeys) > 0 }

// TrialKey returns a key for trial writes at the upstream that no client uses: a lock key where a
// glob of lock-keys allows for one, since a user may have no rights to other keys.
func TrialKey(lockKeys []string) string {
	name := "redlock-proxy:trial:" + newID()
	for _, glob := range lockKeys {
		if strings.Contains(glob, "*") && !strings.ContainsAny(glob, `?[\`) {
			return strings.ReplaceAll(glob, "*", name)
		}
	}
	return name
}

// look sees whether locks are available.
func (d *daemon) look() availability.Look {
	l := d.cluster.Look()
	if !HasPlaces(d.cfg) {
		l.Place, l.Known = place.Masters, true
	}
	l.Movable = CanMove(d.cfg)
	if l.Upstream = errNoUpstream; d.upstream != nil {
		l.Upstream = d.upstream.Writes()
	}
	return l
}

var errNoUpstream = errors.New("this proxy has no upstream")

// watchPause is the wait between two looks. Locks count as unavailable after two: a master of which
// the vote is only looked at again is back before that.
const watchPause = 100 * time.Millisecond

// watchAvailability logs when locks are available for the first time, when they are not any more,
// and why, and when they are again, until ctx ends.
func (d *daemon) watchAvailability(ctx context.Context) {
	seen, ready := watch{}, false
	for ; ctx.Err() == nil; _ = pacing.Sleep(ctx, watchPause) {
		look := d.look()
		verdict := look.Decide()
		change, without := seen.see(verdict.State, time.Now())
		switch {
		case verdict.State == availability.Available && !ready:
			ready = true
			d.log.Info("ready", "listen", d.listener.Addr().String(), "masters", look.Masters, "voting", look.Voting, "version", d.opts.Version)
		case change == lost:
			cause := verdict.Cause
			if err := d.cluster.Absence(); !err.HasMajority() {
				cause = err.Error()
			}
			d.log.Warn("locks are not available", "cause", cause)
		case change == back:
			d.log.Info("locks are available again", "without", without.Round(time.Millisecond), "voting", look.Voting, "masters", look.Masters)
		}
	}
}

// watch reports when locks become unavailable and when they are available again, once each. A
// planned step is neither.
type watch struct {
	// since is when they became unavailable; zero: they are not. reported is set once that was
	// reported.
	since    time.Time
	reported bool
}

// transition is what a watch found.
type transition int

const (
	noChange transition = iota
	lost
	back
)

// see takes whether locks are available now. without is how long they were not.
func (w *watch) see(state availability.State, now time.Time) (what transition, without time.Duration) {
	switch {
	case state == availability.Available && w.reported:
		what, without = back, now.Sub(w.since)
		*w = watch{}
	case state != availability.Unavailable:
		if !w.reported {
			w.since = time.Time{}
		}
	case w.since.IsZero():
		w.since = now
	case !w.reported:
		w.reported, what = true, lost
	}
	return what, without
}
