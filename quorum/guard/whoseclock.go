package guard

import "time"

// otherClock is what another master's clock did during a step.
type otherClock int

const (
	// otherUnknown means that it has not been read since, or not precisely enough.
	otherUnknown otherClock = iota
	// otherAlike means that it moved by the same amount.
	otherAlike
	// otherFits means that it fits, and would not if our clock had stepped.
	otherFits
)

// clockOwner tells whose clock moved.
type clockOwner int

const (
	// ownerUnclear means that this is unknown.
	ownerUnclear clockOwner = iota
	// ownerMaster means that the master's clock moved.
	ownerMaster
	// ownerOurs means that this machine's clock moved.
	ownerOurs
)

const (
	// alikeTime and alikeMoved are the largest differences, in time and in size, between two steps
	// with one cause.
	alikeTime  = 2 * time.Second
	alikeMoved = 100 * time.Millisecond
)

// IsLike reports whether both steps may have one cause.
func (s clockStep) IsLike(other clockStep) bool {
	return !s.At.IsZero() && s.At.Sub(other.At).Abs() < alikeTime && (s.Moved-other.Moved).Abs() < alikeMoved
}

// ownerOf returns whose clock moved. asked is set while other masters have not answered yet.
func ownerOf(s clockStep, others []otherClock) (owner clockOwner, asked bool) {
	unknown := false
	for _, o := range others {
		switch o {
		case otherFits:
			return ownerMaster, false
		case otherUnknown:
			unknown = true
		}
	}
	if s.Moved > 0 && (s.Missed-s.Moved).Abs() < alikeMoved {
		return ownerOurs, unknown
	}
	return ownerUnclear, unknown
}
