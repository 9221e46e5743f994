package guard

import "time"

// otherClock describes the behaviour of another master's clock during a step.
type otherClock int

const (
	// otherUnknown means that the clock has not been read since, or not precisely enough.
	otherUnknown otherClock = iota
	// otherSteppedToo means that the clock moved by the same amount.
	otherSteppedToo
	// otherFits means that the clock fits, and would not fit if this machine's clock had stepped.
	otherFits
)

// clockOwner states whose clock stepped.
type clockOwner int

const (
	// ownerUnknown means that the owner is unknown.
	ownerUnknown clockOwner = iota
	// ownerMaster means that the master's clock stepped.
	ownerMaster
	// ownerThisMachine means that this machine was suspended, which looks like a step.
	ownerThisMachine
)

const (
	// sameCauseTime and sameCauseSize are the largest differences, in time and in size, between two
	// steps with one cause.
	sameCauseTime = 2 * time.Second
	sameCauseSize = 100 * time.Millisecond
)

// MayShareCause reports whether both steps may have one cause.
func (s clockStep) MayShareCause(other clockStep) bool {
	return !s.At.IsZero() && s.At.Sub(other.At).Abs() < sameCauseTime && (s.Size-other.Size).Abs() < sameCauseSize
}

// findClockOwner returns whose clock stepped. incomplete is set while another master's clock is
// otherUnknown and may still decide.
func findClockOwner(s clockStep, otherClocks []otherClock) (owner clockOwner, incomplete bool) {
	unknown := false
	for _, o := range otherClocks {
		switch o {
		case otherFits:
			return ownerMaster, false
		case otherUnknown:
			unknown = true
		}
	}
	if s.Size > 0 && (s.SuspendedFor-s.Size).Abs() < sameCauseSize {
		return ownerThisMachine, unknown
	}
	return ownerUnknown, unknown
}
