package availability

import (
	"fmt"

	"redlock-proxy/quorum/place"
	"redlock-proxy/quorum/vote"
)

// Look is what was seen of the servers that locks need.
type Look struct {
	// Masters is how many there are, Voting how many of them take writes and vote.
	Masters, Voting int
	// Place is where the locks are; Known is false while too few masters told. Movable is set where
	// they can be moved at all.
	Place          place.Place
	Known, Movable bool
	// Changing is set while it is decided which masters follow, or where the locks are next.
	Changing bool
	// Upstream is why the upstream takes no write; nil: it does. It counts while the locks are
	// there.
	Upstream error
}

// State is whether locks are available.
type State int

const (
	// Available: a lock that is free is granted.
	Available State = iota
	// Paused: commands on locks wait for the end of a planned step.
	Paused
	// Unavailable: they fail.
	Unavailable
)

// Verdict is a state, and its cause; empty: locks are available. The cause names no server, so
// anybody may read it.
type Verdict struct {
	State State
	Cause string
}

// Votes says how many masters vote.
func (l Look) Votes() string { return fmt.Sprintf("%d of %d masters vote", l.Voting, l.Masters) }

// LocksAt is where the locks are in a word, for whoever looks: upstream, masters,
// moving-to-masters, moving-to-upstream, or unknown. It is empty where they cannot be moved.
func (l Look) LocksAt() string {
	switch {
	case !l.Movable:
		return ""
	case !l.Known:
		return "unknown"
	default:
		return l.Place.Shown()
	}
}

// Decide returns whether locks are available.
func (l Look) Decide() Verdict {
	needed := vote.Majority(l.Masters)
	switch {
	case l.Changing && !l.Place.Moves():
		return Verdict{Paused, "the masters are being changed, or the locks moved: commands on locks wait"}
	case l.Voting < needed && !l.Changing:
		return Verdict{Unavailable, fmt.Sprintf("%s, %d needed", l.Votes(), needed)}
	case l.Place.Moves():
		return Verdict{Paused, fmt.Sprintf("the locks are being moved to the %v: commands on lock keys wait", l.Place.Target())}
	case !l.Known:
		return Verdict{Unavailable, "where the locks are is not known"}
	case l.Place == place.Upstream && l.Upstream != nil:
		return Verdict{Unavailable, fmt.Sprintf("the upstream, where the locks are, takes no write: %v", l.Upstream)}
	default:
		return Verdict{}
	}
}
