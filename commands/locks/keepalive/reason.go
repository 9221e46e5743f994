package keepalive

import (
	"errors"

	"redlock-proxy/quorum"
)

// Reason says why a kept lock was lost.
type Reason int

// The reasons.
const (
	// NotHeld: no majority holds the lock with the token. It expired, was released, or was
	// replaced.
	NotHeld Reason = iota
	// Forced: FORCEUNLOCK at this proxy took the lock from its holder.
	Forced
	// NoQuorum: no majority of the masters answered until the validity had ended.
	NoQuorum
	// Contended: other clients changed the key again and again until the validity had ended.
	Contended
	// Moved: the locks on lock keys have left the masters.
	Moved
	// MaxHold: the time of MAXHOLD has passed.
	MaxHold
	// Failed: renewals failed for any other reason until the validity had ended.
	Failed
	// reasonCount is the number of reasons.
	reasonCount
)

// String returns the reason as it stands in pushes and metrics.
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

// reasonOf returns why a renewal failed. isFinal is set if no other try can succeed.
func reasonOf(err error) (reason Reason, isFinal bool) {
	var elsewhere *quorum.WrongLocationError
	switch {
	case errors.Is(err, quorum.ErrNotHeld):
		return NotHeld, true
	case errors.As(err, &elsewhere):
		return Moved, !elsewhere.Now.Moves()
	case errors.As(err, new(*quorum.NoQuorumError)), errors.Is(err, errTooLate):
		return NoQuorum, false
	case errors.Is(err, quorum.ErrContended):
		return Contended, false
	}
	return Failed, false
}

// errTooLate is the cause of a renewal's context once the validity has ended.
var errTooLate = errors.New("the renewal took too long")
