package availability

import (
	"fmt"

	"redlock-proxy/quorum/location"
	"redlock-proxy/quorum/vote"
)

// Inputs holds the observed state of the masters and of the upstream. Decide evaluates it.
type Inputs struct {
	// Masters is the number of masters, and VotingMasters the number of masters that accept writes
	// and vote.
	Masters, VotingMasters int
	// Place is the location of the locks. Known is false if too few masters reported it. Movable is
	// set if this proxy can move locks, and take them at the upstream.
	Place          location.Place
	Known, Movable bool
	// Changing is set while the masters decide on a change of the masters or on the next location
	// of the locks.
	Changing bool
	// UpstreamErr is the reason why the upstream refuses writes, or nil. It matters only while the
	// locks are at the upstream.
	UpstreamErr error
}

// State is the availability of locks.
type State int

const (
	// Available means that clients can take free locks.
	Available State = iota
	// Paused means that commands on locks wait for the end of a planned step.
	Paused
	// Unavailable means that commands on locks fail.
	Unavailable
)

// Verdict is a state and its cause, which is empty if locks are available. The cause names no
// server, so every client may see it.
type Verdict struct {
	State State
	Cause string
}

// Votes returns the number of masters that vote, such as "2 of 3 masters vote".
func (l Inputs) Votes() string {
	return fmt.Sprintf("%d of %d masters vote", l.VotingMasters, l.Masters)
}

// LockStorage returns the location of the locks in one word: upstream, masters, moving-to-masters,
// moving-to-upstream, or unknown; empty if the locks cannot be moved.
func (l Inputs) LockStorage() string {
	switch {
	case !l.Movable:
		return ""
	case !l.Known:
		return "unknown"
	default:
		return l.Place.Describe()
	}
}

// LacksUpstream reports whether the locks are at an upstream that this proxy does not have.
func (l Inputs) LacksUpstream() bool { return l.Place == location.Upstream && !l.Movable }

// Decide decides whether locks are available, and names the cause if they are not.
func (l Inputs) Decide() Verdict {
	needed := vote.Majority(l.Masters)
	switch {
	case l.Changing && !l.Place.Moves():
		return Verdict{Paused, "the masters are being changed, or the locks moved: commands on locks wait"}
	case l.VotingMasters < needed && !l.Changing:
		return Verdict{Unavailable, fmt.Sprintf("%s, %d needed", l.Votes(), needed)}
	case l.Place.Moves():
		cause := fmt.Sprintf("the locks are being moved to the %v: commands on lock keys wait", l.Place.Target())
		return Verdict{Paused, cause}
	case !l.Known:
		return Verdict{Unavailable, "the location of the locks is unknown"}
	case l.LacksUpstream():
		return Verdict{Unavailable, "the locks are at the upstream, which this proxy does not have"}
	case l.Place == location.Upstream && l.UpstreamErr != nil:
		return Verdict{Unavailable, fmt.Sprintf("the upstream, which holds the locks, refuses writes: %v", l.UpstreamErr)}
	default:
		return Verdict{}
	}
}
