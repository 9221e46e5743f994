package keepalive

import (
	"errors"

	"redlock-proxy/quorum"
)

// Reason is the reason for the loss of a kept lock.
type Reason int

// The reasons, in the order of their names in String.
const (
	// NotHeld means that no majority holds the lock with the token. It expired, was released, or
	// was replaced.
	NotHeld Reason = iota
	// Forced means that FORCEUNLOCK at this proxy took the lock from its holder.
	Forced
	// NoQuorum means that no majority of the masters answered until the validity had ended.
	NoQuorum
	// Contended means that other clients changed the key again and again until the validity had
	// ended.
	Contended
	// Moved means that the locks on lock keys have left the masters.
	Moved
	// MaxHold means that the time of MAXHOLD has passed.
	MaxHold
	// Failed means that renewals failed for any other reason until the validity had ended.
	Failed
	// reasonCount is the number of reasons.
	reasonCount
)

// String returns the name of the reason in pushes and metrics.
func (r Reason) String() string {
	return [reasonCount]string{"not_held", "forced", "no_quorum", "contended", "moved", "max_hold", "failed"}[r]
}

// Reasons returns all reasons.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// reasonOf returns the reason for a failed renewal. isFinal is true if no retry can succeed.
func reasonOf(err error) (reason Reason, isFinal bool) {
	var wrongLocation *quorum.WrongLocationError
	switch {
	case errors.Is(err, quorum.ErrNotHeld):
		return NotHeld, true
	case errors.As(err, &wrongLocation):
		return Moved, !wrongLocation.Current.Moves()
	case errors.As(err, new(*quorum.NoQuorumError)), errors.Is(err, errTooLate):
		return NoQuorum, false
	case errors.Is(err, quorum.ErrContended):
		return Contended, false
	}
	return Failed, false
}

// errTooLate is the cause of a renewal's context once the validity has ended.
var errTooLate = errors.New("the renewal took too long")
