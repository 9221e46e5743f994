package register

import (
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

var (
	// ErrHeld: a majority holds the key for another.
	ErrHeld = errors.New("held by another client")
	// ErrNotHeld: no majority holds the key with that token.
	ErrNotHeld = errors.New("not held with that token")
	// ErrForeign: the key is held by a client that locks on the masters directly, and
	// what others wrote there is never changed.
	ErrForeign = errors.New("the key is held by a client of the masters themselves, and can only be changed there")
	// ErrTooShort: the TTL is so short that nothing of it would be left.
	ErrTooShort = errors.New("the TTL is too short to be granted")
	// ErrContended: other attempts, or what is left of them, kept the command from its end for as
	// long as it was tried. It was not carried out.
	ErrContended = errors.New("the key is contended: every attempt collided with another")
)

// InsteadError is ErrHeld or ErrNotHeld where the current value of the one key is known, as a Read
// would have returned it; its remaining time may be Unknown.
type InsteadError struct {
	Err     error
	Instead Look
}

// Error is that of ErrHeld or ErrNotHeld.
func (e *InsteadError) Error() string { return e.Err.Error() }

// Unwrap is ErrHeld or ErrNotHeld.
func (e *InsteadError) Unwrap() error { return e.Err }

// refuses is an error with what was found, if that is settled.
func (f finding) refuses(err error) error {
	if f.standing == Open || f.unsettled() {
		return err
	}
	l := f.look()
	l.Unknown = l.Unknown || f.uneven() || f.longest == cell.NotReported
	return &InsteadError{Err: err, Instead: l}
}

// NoQuorum says that what became of a command cannot be known, or that it cannot be
// carried out, for want of masters that answer.
type NoQuorum struct {
	// Replies are those of the masters, in their order.
	Replies []Reply
	// Late is how long it took until a majority agreed, where that was too long.
	Late time.Duration
	// Unclear is set where the masters answered: others changed the key so often meanwhile
	// that what became of the command cannot be seen.
	Unclear bool
	// Overtaken is set where that was so for as long as the command was tried: trying for
	// longer would have shown it.
	Overtaken bool
}

// Error is the sentence without the masters' names, which the caller knows.
func (e *NoQuorum) Error() string {
	switch {
	case e.Late > 0:
		return "a majority agreed too late"
	case e.Unclear:
		return "what became of the command cannot be seen any more"
	default:
		return "too few masters answered"
	}
}
