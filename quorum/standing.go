package quorum

import "errors"

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
