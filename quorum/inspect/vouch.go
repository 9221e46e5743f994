package inspect

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/quorum/vote"
)

// ErrNotNeeded is returned by MayVouch where a majority votes: the other masters catch up by
// themselves.
var ErrNotNeeded = errors.New("a majority of the masters votes")

// RefusedError is why an operator's override is refused.
type RefusedError struct {
	// Reasons are sentences, one for each thing that is in the way.
	Reasons []string
}

// Error joins the reasons.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// MayVouch decides whether an operator's override can be taken, by which no lock that these masters
// may have forgotten was granted for longer than ttl: every master must be reached and fit,
// and none may hold a lock that contradicts it. The findings are those of Survey. It returns nil,
// ErrNotNeeded, or a *RefusedError.
func MayVouch(findings []Finding, ttl time.Duration) error {
	var reasons []string
	votes := 0
	for _, f := range findings {
		switch {
		case f.Err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case len(f.Unsafe) > 0:
			reasons = append(reasons, f.Name+": "+strings.Join(f.Unsafe, ", "))
		case f.Locks.Outlasts(ttl):
			reasons = append(reasons, fmt.Sprintf("%s: %s", f.Name, f.locksThere()))
		}
		if f.Votes && f.Err == nil && len(f.Unsafe) == 0 {
			votes++
		}
	}
	switch {
	case votes >= vote.Majority(len(findings)):
		return ErrNotNeeded
	case len(reasons) > 0:
		return &RefusedError{reasons}
	default:
		return nil
	}
}

// locksThere describes the locks on a master.
func (f Finding) locksThere() string {
	locks, each := fmt.Sprintf("%d locks are held there", f.Locks.Count), "one of them "
	if f.Locks.Count == 1 {
		locks, each = "1 lock is held there", ""
	}
	if f.Locks.Left < 0 {
		return locks + ", " + each + "without an end"
	}
	return fmt.Sprintf("%s, for up to %v", locks, f.Locks.Left.Round(time.Millisecond))
}
