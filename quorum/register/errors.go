package register

import (
	"errors"
	"time"

	"redlock-proxy/quorum/cell"
)

var (
	// ErrHeld means that a majority holds the key for another client.
	ErrHeld = errors.New("held by another client")
	// ErrNotHeld means that no majority holds the key with the token.
	ErrNotHeld = errors.New("not held with that token")
	// ErrForeign means that a client that locks on the masters directly holds the key. A proxy
	// never changes such a key.
	ErrForeign = errors.New("cannot change the key: its holder locks on the masters directly, without a proxy; " +
		"change it on the masters")
	// ErrTooShort means that the TTL leaves no validity.
	ErrTooShort = errors.New("the TTL is too short to be granted")
	// ErrContended means that other attempts, or their leftovers, prevented each try of the
	// command. The command had no effect.
	ErrContended = errors.New("the key is contended: every try collided with a change by another client; try again")
)

// RefusedError holds ErrHeld or ErrNotHeld, and the current value of the key. CurrentSnapshot
// equals the result of Read, except that its remaining time may be unknown.
type RefusedError struct {
	Err             error
	CurrentSnapshot Snapshot
	// Key is the index of the key that is held, if several keys were to be taken.
	Key int
}

// Error returns the text of ErrHeld or ErrNotHeld.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns ErrHeld or ErrNotHeld.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusalError adds the current value of key number i to an error, if the value is decided.
func (t tally) refusalError(err error, i int) error {
	if t.status == TallyUndetermined || t.isUnchosen() {
		return err
	}
	l := t.snapshot()
	l.TimeLeftUnknown = l.TimeLeftUnknown || t.leasesDiffer() || t.longestTimeLeft == cell.NotReported
	return &RefusedError{Err: err, CurrentSnapshot: l, Key: i}
}

// NoQuorum means that too few masters replied to carry out a command, or to determine its effect.
type NoQuorum struct {
	// Replies has one entry for each master.
	Replies []Reply
	// AgreementTime is the time that a majority took to agree, if that was too long.
	AgreementTime time.Duration
	// Unclear is set if the masters replied, but other commands changed the key, or the key expired
	// meanwhile, so that the effect of this command is unknown.
	Unclear bool
	// Overtaken is set if other commands overtook each retry, or each retry took too long. More
	// retries would find out the effect.
	Overtaken bool
}

// Error returns a clause without the names of the masters, which the caller knows.
func (e *NoQuorum) Error() string {
	switch {
	case e.AgreementTime > 0:
		return "a majority agreed too late"
	case e.Unclear:
		return "the command may or may not have taken effect: other commands changed the key meanwhile"
	default:
		return "too few masters answered"
	}
}

// undeterminedError returns the error of a try that leaves the state of key number i undetermined.
// A *splitError requests another try: a rival's attempt, or cells that are about to expire, may be
// the cause.
func undeterminedError(replies []Reply, i int) error {
	switch {
	case allExpireSoon(replies):
		return &splitError{replies: replies}
	case HasAnswerQuorum(replies):
		return &splitError{possibleHolders: possibleHolders(replies, i), replies: replies}
	default:
		return &NoQuorum{Replies: replies}
	}
}
