package quorum

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"redlock-proxy/quorum/guard"
	"redlock-proxy/quorum/master"
	"redlock-proxy/quorum/register"
)

var (
	// ErrHeld is returned when a majority holds the key for another, or the time to wait
	// for it ran out.
	ErrHeld = register.ErrHeld

	// ErrNotHeld is returned when no majority holds the key with the token (any more).
	ErrNotHeld = register.ErrNotHeld

	// ErrForeign is returned for a change of a key that a client holds which locks on the
	// masters directly.
	ErrForeign = register.ErrForeign

	// ErrTooShort is returned for a TTL of which nothing would be left.
	ErrTooShort = register.ErrTooShort

	// ErrContended is returned when others kept a command from its end; it was not
	// carried out.
	ErrContended = register.ErrContended

	// ErrFences is returned where the fence counter of a key was set so high by hand that no
	// higher number is left.
	ErrFences = register.ErrFences

	// ErrClosed is the cause given for masters of a cluster that has stopped.
	ErrClosed = master.ErrClosed

	// ErrQueueFull is the cause given for a master with too many operations
	// waiting to be sent.
	ErrQueueFull = master.ErrQueueFull

	// ErrTooLong is returned where there was no room for what the masters hold under the keys.
	ErrTooLong = master.ErrTooLong
)

// InsteadError is ErrHeld or ErrNotHeld where it is known what the one key holds instead.
type InsteadError = register.InsteadError

// QuarantineError is the cause of a missing vote of a master that answers, but may have
// forgotten a lock.
type QuarantineError = guard.QuarantineError

// UnfitError is why a master is not asked at all: a lock there cannot be relied on.
type UnfitError = guard.UnfitError

// NoQuorumError is returned where fewer than a majority of the masters answered.
// Errors.Is and errors.As reach the causes.
type NoQuorumError struct {
	// Masters is the number of masters, Answered of them gave a vote.
	Masters, Answered int
	// Causes holds one *MasterError for each master that did not.
	Causes *multierror.Error
	// Late is how long it took until a majority agreed, where that was too long to be
	// relied on; else zero.
	Late time.Duration
	// Unclear is set where the masters answered, but what became of the command cannot be
	// seen any more, because others have changed the key since.
	Unclear bool
	// Unconfirmed is set where the masters answered, and did not confirm where the locks are.
	Unconfirmed bool
	// Changed is set while the masters are being changed; ChangedTo are those that follow, where
	// that is known.
	Changed   bool
	ChangedTo []string
}

func newNoQuorum(masters int) *NoQuorumError {
	return &NoQuorumError{Masters: masters, Causes: &multierror.Error{ErrorFormat: joinCauses}}
}

func (e *NoQuorumError) add(cause *MasterError) { e.Causes = multierror.Append(e.Causes, cause) }

// Error counts the answers and names each master that gave none, with its cause. Masters
// in quarantine for the same reason are counted together. Where a majority answered, what
// the others, or the copies that they blocked, may hold still decides.
func (e *NoQuorumError) Error() string {
	if e.Late > 0 {
		return fmt.Sprintf("a majority of %d masters agreed only after %d ms", e.Masters, e.Late.Milliseconds())
	}
	if e.Unclear {
		return "others have changed the key since: what became of the command cannot be seen any more"
	}
	if e.Changed {
		return e.changeText()
	}
	if e.Unconfirmed {
		return fmt.Sprintf("%d of %d masters answered, and no majority of them confirmed where the locks are", e.Answered, e.Masters)
	}
	text := e.quarantines()
	switch open := e.HasMajority(); {
	case open && len(e.Causes.Errors) == 0:
		return fmt.Sprintf("%d of %d masters answered, and the state of the key is undetermined; if it does not clear up, FORCEUNLOCK it", e.Answered, e.Masters)
	case open && text != "":
		return fmt.Sprintf("%d of %d masters vote, and the state of the key is undetermined: %s", e.Answered, e.Masters, text)
	case open:
		return fmt.Sprintf("%d of %d masters answered, and the state of the key is undetermined: %v", e.Answered, e.Masters, e.Causes)
	case text != "":
		return fmt.Sprintf("%d of %d masters vote: %s", e.Answered, e.Masters, text)
	default:
		return fmt.Sprintf("%d of %d masters answered, %d needed: %v", e.Answered, e.Masters, Majority(e.Masters), e.Causes)
	}
}

// HasMajority reports whether a majority answered, and what the others, or the copies that they
// blocked, may hold decides.
func (e *NoQuorumError) HasMajority() bool { return e.Answered >= Majority(e.Masters) }

// changeText describes a change of the masters.
func (e *NoQuorumError) changeText() string {
	if len(e.ChangedTo) == 0 {
		return "the masters are being changed, or were by another proxy: this proxy's configuration has to name those of now"
	}
	return fmt.Sprintf("the masters are being changed to %s: a majority of them does not vote yet, or this proxy's configuration names others", strings.Join(e.ChangedTo, ", "))
}

// isUnproven reports whether a master's vote did not count because something was amiss that is not
// known yet.
func (e *NoQuorumError) isUnproven() bool {
	for _, cause := range e.Causes.WrappedErrors() {
		var q *QuarantineError
		if errors.As(cause, &q) && (q.Why == guard.Unproven || q.Why == guard.Succeeded) {
			return true
		}
	}
	return false
}

// quarantines describes the masters in quarantine, then of the others that gave no vote.
// It is empty if there are none in quarantine.
func (e *NoQuorumError) quarantines() string {
	var reasons []guard.Reason
	var others []error
	left := map[guard.Reason][]time.Duration{}
	assumed, atLeast, differs, places := false, time.Duration(0), "", ""
	for _, cause := range e.Causes.WrappedErrors() {
		var q *QuarantineError
		if !errors.As(cause, &q) {
			others = append(others, cause)
			continue
		}
		if len(left[q.Why]) == 0 {
			reasons = append(reasons, q.Why)
		}
		left[q.Why] = append(left[q.Why], q.Left())
		assumed, atLeast = assumed || q.Assumed, max(atLeast, q.AtLeast)
		differs, places = cmp.Or(differs, q.Differs), cmp.Or(places, q.Places)
	}
	if len(reasons) == 0 {
		return ""
	}
	var texts []string
	for _, r := range reasons {
		n := len(left[r])
		texts = append(texts, fmt.Sprintf("%d %s", n, r.Text(n, untilEnough(left[r], Majority(e.Masters)-e.Answered))))
	}
	if len(others) > 0 {
		texts = append(texts, joinCauses(others))
	}
	if differs != "" {
		texts = append(texts, guard.RulesAdvice(differs))
	}
	if places != "" {
		texts = append(texts, places)
	}
	if assumed {
		texts = append(texts, guard.Advice(atLeast))
	}
	return strings.Join(texts, "; ")
}

// untilEnough is after what time so many of the masters in quarantine vote again, or all of them
// where they are fewer; zero: it is not known.
func untilEnough(left []time.Duration, needed int) time.Duration {
	slices.SortFunc(left, func(a, b time.Duration) int {
		return cmp.Or(cmp.Compare(min(b, 1), min(a, 1)), cmp.Compare(a, b)) // those not known last
	})
	return left[min(max(needed, 1), len(left))-1]
}

// Unwrap gives the causes.
func (e *NoQuorumError) Unwrap() []error { return e.Causes.WrappedErrors() }

// MasterError is the cause of one master's missing vote.
type MasterError struct {
	// Master is its address, as in host:port, without credentials.
	Master string
	// Err is what happened there.
	Err error
}

// Error is the master's address and, in plain words, what happened there.
func (e *MasterError) Error() string { return e.Master + ": " + master.CauseText(e.Err) }

// Unwrap gives what happened.
func (e *MasterError) Unwrap() error { return e.Err }

// joinCauses puts the causes in one line, for an error reply.
func joinCauses(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}
