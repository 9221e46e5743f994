package guard

import "time"

// clockStep is a sighting that did not fit: when it was, and by how much the clock had moved.
type clockStep struct {
	At time.Time
	// Moved is negative for a step back.
	Moved time.Duration
	// Number is its number among the sightings of all masters.
	Number uint64
	// Missed is how much longer than our monotonic clock that of the machine (which counts
	// the time that it was suspended) ran since the last sighting that fitted.
	Missed time.Duration
	// Judged is set once it is known whose clock it was.
	Judged bool
}

// SteppedBefore reports whether a step by which a sighting does not fit surely came before the master's clock showed a time. fitted is the
// last sighting that fitted: of a step that is no larger than the time between both, this cannot be known. That time begins when fitted
// was sent, since its answer may have come late, also after the step.
func (s Sighting) SteppedBefore(then, moved time.Duration, fitted Sighting) bool {
	within := s.Got.Sub(fitted.Sent)
	within += drifted(within) + 2*clockNoise
	since := s.ServerTime - then
	return then > 0 && moved.Abs() > within && 0 <= since && since <= within
}

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
