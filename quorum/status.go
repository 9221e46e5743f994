package quorum

import (
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
)

// Standing is whether a master votes, or why not.
type Standing int

const (
	// Voting: its votes count.
	Voting Standing = iota
	// Quarantined: it is asked, but may have forgotten something, so its votes do not
	// count.
	Quarantined
	// Unfit: it is not asked, because a lock there could not be relied on.
	Unfit
	// Down: it does not answer.
	Down
)

// String is the standing in lower-case words.
func (s Standing) String() string {
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

// standing is that of a master that is down for a cause, or in quarantine, or neither.
func standing(cause error, quarantine *QuarantineError) Standing {
	var unfit *UnfitError
	switch {
	case errors.As(cause, &unfit):
		return Unfit
	case cause != nil:
		return Down
	case quarantine != nil:
		return Quarantined
	default:
		return Voting
	}
}

// MasterStatus is what a cluster knows of one of its masters.
type MasterStatus struct {
	// Name is its address, without credentials.
	Name string
	// Standing is whether it votes, or why not.
	Standing Standing
	// Err is nil while the master is up, else why it is not.
	Err error
	// Quarantine is why it has no vote, and for how long, although it is up, or nil.
	Quarantine *QuarantineError
	// Since is when that Standing began.
	Since time.Time
	// RoundTrip is the shortest that the last probe measured.
	RoundTrip time.Duration
	// Watched is how many keys are watched there for those who wait, and Unwatched why none is
	// although somebody waits, or nil: then they poll it.
	Watched   int
	Unwatched error
	// Owed is how many removals wait for it to be back.
	Owed int
	// CatchUps is how often this cluster had it catch up from the others.
	CatchUps int64
	// ClockOffset is by how much its clock is ahead of this machine's; ClockKnown is false where
	// that is not known.
	ClockOffset time.Duration
	ClockKnown  bool
}

// Status returns the state of each master, in the order of Options.Masters.
func (c *Cluster) Status() []MasterStatus { return c.now().Status() }

// Status is Cluster.Status.
func (g *generation) Status() []MasterStatus {
	all := make([]MasterStatus, len(g.masters))
	for i, m := range g.masters {
		all[i] = statusOf(m)
	}
	for i, s := range g.waker.Standings() {
		all[i].Watched, all[i].Unwatched = s.Keys, s.Err
	}
	return all
}

func statusOf(m *master.Master) MasterStatus {
	h := m.Health()
	return MasterStatus{
		Name: m.Name(), Standing: standing(h.Err, h.Quarantine), Err: h.Err, Quarantine: h.Quarantine,
		Since: h.Since, RoundTrip: h.RoundTrip, Owed: h.Owed,
		CatchUps: h.CatchUps, ClockOffset: h.ClockOffset, ClockKnown: h.ClockKnown,
	}
}

// observe is Cluster.Observe.
func (g *generation) observe(f func(masters []string) func(master int, took time.Duration)) {
	if f == nil {
		return
	}
	observe := f(g.names())
	for i, m := range g.masters {
		m.Observe(func(took time.Duration) { observe(i, took) })
	}
}

// Cause is, in plain words, why the master is not up; empty while it is.
func (s MasterStatus) Cause() string {
	if s.Err == nil {
		return ""
	}
	return master.CauseText(s.Err)
}

// WhyUnwatched is, in plain words, why it cannot be watched; empty where it can, or nobody waits.
func (s MasterStatus) WhyUnwatched() string {
	if s.Unwatched == nil {
		return ""
	}
	return master.CauseText(s.Unwatched)
}

// Observe has what f makes of the names of the masters called with how long each batch took that a
// master answered, from its sending on; masters are numbered as in Status. f is called for the
// masters of now, and whenever others follow. What it makes must not wait. Observe is called before
// Run.
func (c *Cluster) Observe(f func(masters []string) func(master int, took time.Duration)) {
	c.roundTrips = f
	c.now().observe(f)
}

// StartsFresh reports whether a fresh start is under way: masters wait whether a proxy that
// knows of locks objects.
func (c *Cluster) StartsFresh() bool {
	return slices.ContainsFunc(c.now().masters, func(m *master.Master) bool {
		why := m.Health().Quarantine
		return why != nil && why.Why == guard.AwaitsFreshStart
	})
}
