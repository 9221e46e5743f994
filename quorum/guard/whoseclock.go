package guard

import "time"

// otherClock is what another master's clock did when one stepped.
type otherClock int

const (
	// otherUnknown: it has not been looked at since, or not closely enough.
	otherUnknown otherClock = iota
	// otherAlike: it moved alike.
	otherAlike
	// otherFits: it fits, and would not if ours had moved so far.
	otherFits
)

// clockOwner is whose clock moved.
type clockOwner int

const (
	// OwnerUnclear: it is not known.
	ownerUnclear clockOwner = iota
	// OwnerMaster: the master's.
	ownerMaster
	// OwnerOurs: ours.
	ownerOurs
)

const (
	// alikeTime and alikeMoved are how far apart in time, and in size, two steps may be
	// to have one cause.
	alikeTime  = 2 * time.Second
	alikeMoved = 100 * time.Millisecond
)

// IsLike reports whether both may have one cause.
func (s clockStep) IsLike(other clockStep) bool {
	return !s.At.IsZero() && s.At.Sub(other.At).Abs() < alikeTime && (s.Moved-other.Moved).Abs() < alikeMoved
}

// ownerOf is whose clock moved. asked is set while others have not answered yet.
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
