package watch

import (
	"slices"
	"time"
)

// state is the known state of a key on one master.
type state byte

const (
	// stateUnknown means that the master is not watched.
	stateUnknown state = iota
	// stateReading means that a read is in progress.
	stateReading
	// stateHeld means that the key holds a lock, and the master will report the next change.
	stateHeld
	// stateFree means that the key held no lock at the read, and the master will report the next
	// change.
	stateFree
	// stateChanged means that the key has changed since the read.
	stateChanged
)

// observation holds the state of a key on one master and, if a lock is held, its expiry (zero:
// never).
type observation struct {
	state  state
	expiry time.Time
	// stale is set with stateChanged if the master reported the change between the two replies to a
	// read.
	stale bool
	// hasExpiries is set with stateHeld if the value has members with expiries of their own.
	hasExpiries bool
}

// Verdict is the conclusion from the observations of all masters. The constants describe the
// verdict for a lock; evaluateChange describes the verdict for a change alarm.
type Verdict byte

const (
	// Unclear means that the observations do not show whether a try is worthwhile.
	Unclear Verdict = iota
	// Held means that so many masters hold a lock that a try would fail.
	Held
	// Changed means that so many masters reported a change since the read, or were free, that a try
	// may succeed.
	Changed
	// Free means that so many masters were free that a try can succeed.
	Free
)

// View summarizes the known state of a key on all masters.
type View struct {
	Verdict Verdict
	// Expiry is, with Held, the time when so many locks have expired that a try can succeed; zero:
	// unknown or never.
	Expiry time.Time
	// SomeChanged is set if some masters reported a change, but too few for Changed.
	SomeChanged bool
	// Reading is set if reads are in progress.
	Reading bool
	// PartlyWatched is set, in the view of a change alarm, if some masters are not watched.
	PartlyWatched bool
	// HasExpiries is set, with Held, if a held value has members with expiries of their own.
	HasExpiries bool
}

// evaluate returns the view for the observations. quorum is the size of a majority.
func evaluate(observations []observation, quorum int, now time.Time) View {
	var count [stateChanged + 1]int
	var expiries []time.Time
	for _, s := range observations {
		switch {
		case s.state == stateHeld && !s.expiry.IsZero() && !s.expiry.After(now):
			count[stateChanged]++
			continue
		case s.state == stateHeld && !s.expiry.IsZero():
			expiries = append(expiries, s.expiry)
		}
		count[s.state]++
	}
	v := View{Reading: count[stateReading] > 0}
	switch {
	case count[stateFree] >= quorum:
		v.Verdict = Free
	case count[stateFree]+count[stateChanged] >= quorum:
		v.Verdict = Changed
	case count[stateHeld] > max(0, len(observations)-quorum):
		v.Verdict, v.SomeChanged = Held, count[stateChanged] > 0
		v.Expiry = expiryOf(expiries, quorum-count[stateFree])
		v.HasExpiries = slices.ContainsFunc(observations, func(s observation) bool { return s.state == stateHeld && s.hasExpiries })
	default:
		v.SomeChanged = count[stateChanged] > 0
	}
	return v
}

// evaluateChange returns the view for a change alarm (NewChangeAlarm). Held means that a majority
// of the masters answered a read, and no master has reported a change since. Changed means that a
// master reported a change. Then SomeChanged is set if fewer than a majority reported one.
func evaluateChange(observations []observation, quorum int, _ time.Time) View {
	var count [stateChanged + 1]int
	for _, s := range observations {
		count[s.state]++
	}
	v := View{Reading: count[stateReading] > 0, PartlyWatched: count[stateUnknown] > 0}
	switch {
	case count[stateChanged] > 0:
		v.Verdict, v.SomeChanged = Changed, count[stateChanged] < quorum
	case count[stateHeld]+count[stateFree] >= quorum:
		v.Verdict = Held
	}
	return v
}

// expiryOf returns the time when n of the locks have expired, or zero if fewer have an expiry.
func expiryOf(expiries []time.Time, n int) time.Time {
	if len(expiries) < n {
		return time.Time{}
	}
	slices.SortFunc(expiries, time.Time.Compare)
	return expiries[n-1]
}
