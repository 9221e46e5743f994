package clock

import "time"

// Step is a sighting that did not fit: when it was, and by how much the clock had moved.
type Step struct {
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
	within += drifted(within) + 2*Noise
	since := s.ServerTime - then
	return then > 0 && moved.Abs() > within && 0 <= since && since <= within
}

// Other is what another master's clock did when one stepped.
type Other int

const (
	// OtherUnknown: it has not been looked at since, or not closely enough.
	OtherUnknown Other = iota
	// OtherAlike: it moved alike.
	OtherAlike
	// OtherFits: it fits, and would not if ours had moved so far.
	OtherFits
)

// Owner is whose clock moved.
type Owner int

const (
	// OwnerUnclear: it is not known.
	OwnerUnclear Owner = iota
	// OwnerMaster: the master's.
	OwnerMaster
	// OwnerOurs: ours.
	OwnerOurs
)

const (
	// AlikeTime and alikeMoved are how far apart in time, and in size, two steps may be
	// to have one cause.
	AlikeTime  = 2 * time.Second
	alikeMoved = 100 * time.Millisecond
)

// IsLike reports whether both may have one cause.
func (s Step) IsLike(other Step) bool {
	return !s.At.IsZero() && s.At.Sub(other.At).Abs() < AlikeTime && (s.Moved-other.Moved).Abs() < alikeMoved
}

// OwnerOf is whose clock moved. asked is set while others have not answered yet.
func OwnerOf(s Step, others []Other) (owner Owner, asked bool) {
	unknown := false
	for _, o := range others {
		switch o {
		case OtherFits:
			return OwnerMaster, false
		case OtherUnknown:
			unknown = true
		}
	}
	if s.Moved > 0 && (s.Missed-s.Moved).Abs() < alikeMoved {
		return OwnerOurs, unknown
	}
	return OwnerUnclear, unknown
}
