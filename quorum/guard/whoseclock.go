package guard

import "time"

// otherClock is the behaviour of another master's clock during a step.
type otherClock int

const (
	// otherUnknown means that the clock has not been read since, or not precisely enough.
	otherUnknown otherClock = iota
	// otherAlike means that the clock moved by the same amount.
	otherAlike
	// otherFits means that the clock fits, and would not fit if our clock had stepped.
	otherFits
)

// clockOwner states whose clock stepped.
type clockOwner int

const (
	// ownerUnclear means that the owner is unknown.
	ownerUnclear clockOwner = iota
	// ownerMaster means that the master's clock stepped.
	ownerMaster
	// ownerOurs means that this machine's clock stepped.
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

// ownerOf returns whose clock stepped. asked is set while other masters have not replied yet.
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
