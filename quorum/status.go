package quorum

import (
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// MasterState reports whether a master votes, or why not.
type MasterState int

const (
	// Voting means that the master's votes count.
	Voting MasterState = iota
	// Quarantined means that the master gets operations, but its votes do not count, for example
	// because it may have lost data.
	Quarantined
	// Unfit means that the master gets no operations, because a lock on it would not be safe.
	Unfit
	// Down means that the master does not reply.
	Down
)

// String returns the state in one lower-case word.
func (s MasterState) String() string {
	switch s {
	case Voting:
		return "voting"
	case Quarantined:
		return "quarantine"
	case Unfit:
		return "unfit"
	default:
		return "down"
	}
}

// stateOf returns the state of a master that is down for a cause, or in quarantine, or neither.
func stateOf(cause error, quarantine *QuarantineError) MasterState {
	var unfitErr *UnfitError
	switch {
	case errors.As(cause, &unfitErr):
		return Unfit
	case cause != nil:
		return Down
	case quarantine != nil:
		return Quarantined
	default:
		return Voting
	}
}

// MasterStatus is a cluster's knowledge of one of its masters.
type MasterStatus struct {
	// Name is the address of the master, without credentials.
	Name string
	// State reports whether the master votes, or why not.
	State MasterState
	// Err is the reason why the master is not up, or nil.
	Err error
	// Quarantine is the reason why the master has no vote although it is up, with the remaining
	// time; else nil.
	Quarantine *QuarantineError
	// Since is the time at which the current State began.
	Since time.Time
	// RoundTrip is the shortest round trip of the probe that last brought the master up.
	RoundTrip time.Duration
	// WatchedKeys is the number of clients' keys that this proxy watches on the master, for waiters
	// and for CLIENT TRACKING. WatchErr is the reason why it cannot watch them, or nil.
	WatchedKeys int
	WatchErr    error
	// RemovalsPending is the number of removals that wait until the master is back.
	RemovalsPending int
	// CatchUps is the number of catch-ups that this cluster did for the master.
	CatchUps int64
	// ClockOffset is the time by which the master's clock is ahead of this machine's clock.
	// ClockKnown is false if this proxy does not know the offset.
	ClockOffset time.Duration
	ClockKnown  bool
}

// Status returns the state of each master, in the order of Options.Masters.
func (c *Cluster) Status() []MasterStatus { return c.masterSet().Status() }

// Status implements Cluster.Status.
func (set *masterSet) Status() []MasterStatus {
	all := make([]MasterStatus, len(set.masters))
	for i, m := range set.masters {
		all[i] = statusOf(m)
	}
	for i, s := range set.watcher.Statuses() {
		all[i].WatchedKeys, all[i].WatchErr = s.Keys, s.Err
	}
	return all
}

func statusOf(m *master.Master) MasterStatus {
	h := m.Health()
	return MasterStatus{
		Name: m.Name(), State: stateOf(h.Err, h.Quarantine), Err: h.Err, Quarantine: h.Quarantine,
		Since: h.Since, RoundTrip: h.RoundTrip, RemovalsPending: h.RemovalsPending,
		CatchUps: h.CatchUps, ClockOffset: h.ClockOffset, ClockKnown: h.ClockKnown,
	}
}

// observe implements Cluster.Observe.
func (set *masterSet) observe(f func(masters []string) func(master int, roundTrip time.Duration)) {
	if f == nil {
		return
	}
	observe := f(set.names())
	for i, m := range set.masters {
		m.ObserveRoundTrips(func(roundTrip time.Duration) { observe(i, roundTrip) })
	}
}

// Cause returns, in plain words, the reason why the master is not up, or an empty text.
func (s MasterStatus) Cause() string {
	if s.Err == nil {
		return ""
	}
	return master.CauseText(s.Err)
}

// UnwatchedCause returns, in plain words, the reason why the proxy cannot watch keys on the master.
// The text is empty if the proxy can watch keys, or needs to watch none.
func (s MasterStatus) UnwatchedCause() string {
	if s.WatchErr == nil {
		return ""
	}
	return master.CauseText(s.WatchErr)
}

// Observe measures batches. It calls f with the names of the current masters, and again with each
// new set. The function that f returns gets the time from the sending of a batch to its reply;
// masters are numbered as in Status. That function must not wait. Observe must be called before
// Run.
func (c *Cluster) Observe(f func(masters []string) func(master int, roundTrip time.Duration)) {
	c.observeRoundTrips = f
	c.masterSet().observe(f)
}

// IsFreshStart reports whether a fresh start is in progress, during which a proxy that knows of
// locks can object.
func (c *Cluster) IsFreshStart() bool {
	return slices.ContainsFunc(c.masterSet().masters, func(m *master.Master) bool {
		quarantine := m.Health().Quarantine
		return quarantine != nil && quarantine.Cause == guard.AwaitsFreshStart
	})
}
