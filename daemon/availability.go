package daemon

import (
	"context"
	"time"

	"redlock-proxy/conf"
	"redlock-proxy/internal/pacing"
	"redlock-proxy/quorum/availability"
	"redlock-proxy/quorum/location"
)

// RecordsLocation reports whether the masters record the location of a proxy's locks. If not, the
// locks are at the masters.
func RecordsLocation(cfg conf.Config) bool { return cfg.Guard && len(cfg.LockKeys) > 0 }

// availabilityInputs returns the facts that decide whether locks are available.
func (d *daemon) availabilityInputs() availability.Inputs {
	l := d.cluster.Availability()
	if !RecordsLocation(d.cfg) {
		l.Place, l.Known = location.Masters, true
	}
	l.Movable = CanMove(d.cfg)
	if d.upstream != nil {
		l.UpstreamErr = d.upstream.WriteRefusal()
	}
	return l
}

// watchInterval is the time between two checks. Locks count as unavailable after two failed checks,
// so that they stay available while the proxy only checks the vote of a master again.
const watchInterval = 100 * time.Millisecond

// watchAvailability runs until ctx ends. It logs that locks are available for the first time, that
// they become unavailable, with the cause, and that they are available again.
func (d *daemon) watchAvailability(ctx context.Context) {
	watch, ready := availabilityWatch{}, false
	for ; ctx.Err() == nil; _ = pacing.Sleep(ctx, watchInterval) {
		inputs := d.availabilityInputs()
		verdict := inputs.Decide()
		change, downtime := watch.update(verdict.State, time.Now())
		switch {
		case verdict.State == availability.Available && !ready:
			ready = true
			d.log.Info("ready", "listen", d.listener.Addr().String(), "masters", inputs.Masters, "voting", inputs.VotingMasters,
				"version", d.opts.Version)
		case change == becameUnavailable:
			cause := verdict.Cause
			if err := d.cluster.MissingVotes(); !err.HasMajority() {
				cause = err.Error()
			}
			d.log.Warn("locks are not available", "cause", cause)
		case change == becameAvailable:
			d.log.Info("locks are available again", "without", downtime.Round(time.Millisecond), "voting", inputs.VotingMasters,
				"masters", inputs.Masters)
		}
	}
}

// availabilityWatch detects each loss and each return of the locks once. It ignores planned steps.
type availabilityWatch struct {
	// unavailableSince is the time at which locks became unavailable, or zero. reported is set
	// after the report of the unavailability.
	unavailableSince time.Time
	reported         bool
}

// transition names a change that an availabilityWatch detects.
type transition int

const (
	noChange transition = iota
	becameUnavailable
	becameAvailable
)

// update returns the change, if any. downtime is the time for which locks were unavailable.
func (w *availabilityWatch) update(state availability.State, now time.Time) (change transition, downtime time.Duration) {
	switch {
	case state == availability.Available && w.reported:
		change, downtime = becameAvailable, now.Sub(w.unavailableSince)
		*w = availabilityWatch{}
	case state != availability.Unavailable:
		if !w.reported {
			w.unavailableSince = time.Time{}
		}
	case w.unavailableSince.IsZero():
		w.unavailableSince = now
	case !w.reported:
		w.reported, change = true, becameUnavailable
	}
	return change, downtime
}
