package quorum

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-multierror"
)

var (
	// ErrHeld is returned when a majority answered and the key is held with
	// another token, or the time to wait for it ran out.
	ErrHeld = errors.New("quorum: held by another")

	// ErrNotHeld is returned when a majority answered and the key is not held
	// with the token (any more).
	ErrNotHeld = errors.New("quorum: not held with that token")

	// ErrClosed is the cause given for masters of a cluster that has stopped.
	ErrClosed = errors.New("shutting down")

	// ErrQueueFull is the cause given for a master with too many operations
	// waiting to be sent.
	ErrQueueFull = errors.New("too many operations are waiting for it")

	// errNotConnected is the cause given until a master has answered once.
	errNotConnected = errors.New("not connected yet")
)

// NoQuorumError says that fewer than a majority of the masters answered.
// Errors.Is and errors.As reach the causes.
type NoQuorumError struct {
	// Masters is the number of masters, Answered of them gave a vote.
	Masters, Answered int
	// Causes holds one *MasterError for each master that did not.
	Causes *multierror.Error
	// Legacy is why the legacy server did not answer, or nil.
	Legacy *MasterError
	// Late is how long it took until a majority agreed, where that was too long to be
	// relied on; else zero.
	Late time.Duration
}

// Error counts the answers and names each master that gave none, with its cause. Masters
// in quarantine for the same reason are counted together.
func (e *NoQuorumError) Error() string {
	if e.Late > 0 {
		return fmt.Sprintf("a majority of %d masters agreed after %d ms, %d is the limit",
			e.Masters, e.Late.Milliseconds(), roundLimit.Milliseconds())
	}
	if e.Legacy != nil && e.Answered >= Majority(e.Masters) {
		return fmt.Sprintf("the legacy lock server did not answer: %v", e.Legacy)
	}
	if text := e.quarantines(); text != "" {
		return fmt.Sprintf("%d of %d masters vote: %s", e.Answered, e.Masters, text)
	}
	return fmt.Sprintf("%d of %d masters answered, %d needed: %v",
		e.Answered, e.Masters, Majority(e.Masters), e.Causes)
}

// quarantines tells of the masters in quarantine, then of the others that gave no vote.
// It is empty if there are none in quarantine.
func (e *NoQuorumError) quarantines() string {
	var reasons []reason
	var others []error
	masters, left := map[reason]int{}, map[reason]time.Duration{}
	for _, cause := range e.Causes.WrappedErrors() {
		var q *QuarantineError
		if !errors.As(cause, &q) {
			others = append(others, cause)
			continue
		}
		if masters[q.reason]++; masters[q.reason] == 1 {
			reasons = append(reasons, q.reason)
		}
		left[q.reason] = max(left[q.reason], q.Left())
	}
	if len(reasons) == 0 {
		return ""
	}
	var texts []string
	for _, r := range reasons {
		texts = append(texts, fmt.Sprintf("%d %s", masters[r], quarantineText(r, masters[r], left[r])))
	}
	if len(others) > 0 {
		texts = append(texts, joinCauses(others))
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the causes.
func (e *NoQuorumError) Unwrap() []error {
	causes := e.Causes.WrappedErrors()
	if e.Legacy != nil {
		causes = append(causes, e.Legacy)
	}
	return causes
}

// MasterError is the cause of one master's missing vote.
type MasterError struct {
	// Master is its address, as in host:port, without credentials.
	Master string
	// Err is what happened there.
	Err error
}

// Error is the master's address and, in plain words, what happened there.
func (e *MasterError) Error() string { return e.Master + ": " + causeText(e.Err) }

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

// causeText says what a network error means without the addresses and layers
// that net and go-redis wrap around it: the master is named already.
func causeText(err error) string {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &op):
		return op.Err.Error()
	case err.Error() == "EOF":
		return "connection closed"
	default:
		return err.Error()
	}
}
