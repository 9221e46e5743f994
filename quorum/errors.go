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
	// ErrHeld means that a majority holds the key for another client, or that the wait for the key
	// timed out.
	ErrHeld = register.ErrHeld

	// ErrNotHeld means that no majority holds the key with the token.
	ErrNotHeld = register.ErrNotHeld

	// ErrForeign means that a command cannot change the key, because a client without a proxy has
	// locked it on the masters.
	ErrForeign = register.ErrForeign

	// ErrTooShort means that a TTL is too short to leave any validity.
	ErrTooShort = register.ErrTooShort

	// ErrContended means that other clients kept changing the key. The command changed nothing.
	ErrContended = register.ErrContended

	// ErrFences means that an operator set the fence counter of a key so high that no higher number
	// is left.
	ErrFences = register.ErrFences

	// ErrClosed is the cause for every master of a stopped cluster.
	ErrClosed = master.ErrClosed

	// ErrQueueFull is the cause for a master whose queue of operations is full.
	ErrQueueFull = master.ErrQueueFull

	// ErrTooLong means that the values of the keys exceed the room for replies.
	ErrTooLong = master.ErrTooLong
)

// RefusedError is ErrHeld or ErrNotHeld with the current value of the key.
type RefusedError = register.RefusedError

// QuarantineError is the cause of a missing vote of a master that replies. The master may have lost
// a lock, for example, or its proxies have different settings.
type QuarantineError = guard.QuarantineError

// UnfitError is the reason why a master gets no operations: a lock on that master would not be
// safe.
type UnfitError = guard.UnfitError

// NoQuorumError means that no majority of the masters voted, or that the votes leave the result
// undetermined. The functions errors.Is and errors.As find the causes.
type NoQuorumError struct {
	// Masters is the number of masters; VoteCount of them voted.
	Masters, VoteCount int
	// Causes holds one *MasterError for each master that did not vote, if the cause is known.
	Causes *multierror.Error
	// AgreementTime is the time that a majority took to agree, if that was too long for the lease;
	// otherwise zero.
	AgreementTime time.Duration
	// Unclear is set if the masters answered, but the outcome of the command is unknown because
	// other clients have changed the key since.
	Unclear bool
	// Unconfirmed is set if the masters answered, but did not confirm the location of the locks.
	Unconfirmed bool
	// Changed is set if the masters are being changed, or the locks moved. SameMasters is set if this
	// proxy's configuration names the masters after the change. NewMasters holds these masters, if
	// they are known.
	Changed, SameMasters bool
	NewMasters           []string
}

func newNoQuorum(masters int) *NoQuorumError {
	return &NoQuorumError{Masters: masters, Causes: &multierror.Error{ErrorFormat: joinCauses}}
}

func (e *NoQuorumError) add(cause *MasterError) { e.Causes = multierror.Append(e.Causes, cause) }

// Error returns the number of masters that voted, and each master without a vote with its cause. It
// groups the masters in quarantine by the reason. If a majority voted, Error says that the state of
// the key is undetermined.
func (e *NoQuorumError) Error() string {
	if e.AgreementTime > 0 {
		return fmt.Sprintf("a majority of %d masters agreed only after %d ms", e.Masters, e.AgreementTime.Milliseconds())
	}
	if e.Unclear {
		return "other clients have changed the key since: the outcome of the command is unknown; read the key"
	}
	if e.Changed {
		return e.changeText()
	}
	if e.Unconfirmed {
		return fmt.Sprintf("%d of %d masters answered, but no majority confirmed the location of the locks",
			e.VoteCount, e.Masters)
	}
	text := e.quarantineText()
	switch hasMajority := e.HasMajority(); {
	case hasMajority && len(e.Causes.Errors) == 0:
		return fmt.Sprintf("%d of %d masters answered, and the state of the key is undetermined; "+
			"if it does not clear up, FORCEUNLOCK it", e.VoteCount, e.Masters)
	case hasMajority && text != "":
		return fmt.Sprintf("%d of %d masters vote, and the state of the key is undetermined: %s",
			e.VoteCount, e.Masters, text)
	case hasMajority:
		return fmt.Sprintf("%d of %d masters answered, and the state of the key is undetermined: %v",
			e.VoteCount, e.Masters, e.Causes)
	case text != "":
		return fmt.Sprintf("%d of %d masters vote: %s", e.VoteCount, e.Masters, text)
	default:
		return fmt.Sprintf("%d of %d masters answered, %d needed: %v",
			e.VoteCount, e.Masters, Majority(e.Masters), e.Causes)
	}
}

// HasMajority reports whether a majority voted. Then the state of the key depends on the remaining
// masters, or on blocking copies.
func (e *NoQuorumError) HasMajority() bool { return e.VoteCount >= Majority(e.Masters) }

// changeText describes a change of the masters.
func (e *NoQuorumError) changeText() string {
	switch {
	case e.SameMasters:
		return "the masters are being changed, or the locks moved, and a majority has not confirmed it yet; try again"
	case len(e.NewMasters) == 0:
		return "the masters are being changed, or another proxy has changed them; " +
			"if this lasts, name the current masters in this proxy's configuration"
	}
	return fmt.Sprintf("the masters are being changed to %s: a majority of the new masters does not vote yet; "+
		"if this lasts, name the new masters in this proxy's configuration", strings.Join(e.NewMasters, ", "))
}

// hasUnexplainedQuarantine reports whether a master's vote did not count, and its guard has not
// found the reason yet.
func (e *NoQuorumError) hasUnexplainedQuarantine() bool {
	for _, cause := range e.Causes.WrappedErrors() {
		var q *QuarantineError
		if errors.As(cause, &q) && (q.Cause == guard.Unverified || q.Cause == guard.Replaced) {
			return true
		}
	}
	return false
}

// quarantineText describes the masters in quarantine, then the other masters without a vote. It
// returns an empty text if no master is in quarantine.
func (e *NoQuorumError) quarantineText() string {
	var reasons []guard.Reason
	var otherCauses []error
	waits := map[guard.Reason][]time.Duration{}
	isAssumed, atLeast, ruleDifference, locations := false, time.Duration(0), "", ""
	for _, cause := range e.Causes.WrappedErrors() {
		var q *QuarantineError
		if !errors.As(cause, &q) {
			otherCauses = append(otherCauses, cause)
			continue
		}
		if len(waits[q.Cause]) == 0 {
			reasons = append(reasons, q.Cause)
		}
		waits[q.Cause] = append(waits[q.Cause], q.TimeLeft())
		isAssumed, atLeast = isAssumed || q.AssumesMaxTTL, max(atLeast, q.LongestKnownTTL)
		ruleDifference, locations = cmp.Or(ruleDifference, q.Differences), cmp.Or(locations, q.LocationConflict)
	}
	if len(reasons) == 0 {
		return ""
	}
	var texts []string
	for _, r := range reasons {
		n := len(waits[r])
		texts = append(texts, fmt.Sprintf("%d %s", n, r.Text(n, timeUntilVotes(waits[r], Majority(e.Masters)-e.VoteCount))))
	}
	if len(otherCauses) > 0 {
		texts = append(texts, joinCauses(otherCauses))
	}
	if ruleDifference != "" {
		texts = append(texts, guard.RulesAdvice(ruleDifference))
	}
	if locations != "" {
		texts = append(texts, locations)
	}
	if isAssumed {
		texts = append(texts, guard.TTLAdvice(atLeast))
	}
	return strings.Join(texts, "; ")
}

// timeUntilVotes returns the time until the needed number of masters in quarantine vote again, or
// until all of them vote if fewer masters are in quarantine. Zero means unknown. timeUntilVotes
// sorts waits.
func timeUntilVotes(waits []time.Duration, needed int) time.Duration {
	slices.SortFunc(waits, func(a, b time.Duration) int {
		return cmp.Or(cmp.Compare(min(b, 1), min(a, 1)), cmp.Compare(a, b)) // unknown times last
	})
	return waits[min(max(needed, 1), len(waits))-1]
}

// Unwrap returns the causes.
func (e *NoQuorumError) Unwrap() []error { return e.Causes.WrappedErrors() }

// MasterError is the cause of one master's missing vote.
type MasterError struct {
	// Master is the address of the master, as host:port, without credentials.
	Master string
	// Err is the failure.
	Err error
}

// Error returns the master's address and the failure in plain words.
func (e *MasterError) Error() string { return e.Master + ": " + master.CauseText(e.Err) }

// Unwrap returns the failure.
func (e *MasterError) Unwrap() error { return e.Err }

// joinCauses joins the causes to one line, for an error reply.
func joinCauses(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}
