package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
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
// may have forgotten was granted for longer than ttl: every master must be reached and fit, and
// none may hold a lock that contradicts it, unless that is forced. The findings are those of
// Survey. It returns nil, ErrNotNeeded, or a *RefusedError.
func MayVouch(findings []Finding, ttl time.Duration, forced bool) error {
	var reasons []string
	outlasts := false
	votes := 0
	for _, f := range findings {
		switch {
		case f.Err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case len(f.Unsafe) > 0:
			reasons = append(reasons, f.Name+": "+strings.Join(f.Unsafe, ", "))
		case f.Locks.Outlasts(ttl) && !forced:
			outlasts = true
			reasons = append(reasons, fmt.Sprintf("%s: %s", f.Name, f.locksThere(ttl)))
		}
		if f.Votes && f.Err == nil && len(f.Unsafe) == 0 {
			votes++
		}
	}
	switch {
	case votes >= vote.Majority(len(findings)):
		return ErrNotNeeded
	case len(reasons) > 0:
		if outlasts {
			reasons = append(reasons, "if nobody holds these locks any more, say --force")
		}
		return &RefusedError{reasons}
	default:
		return nil
	}
}

// locksThere describes the locks on a master, and names those that last longer.
func (f Finding) locksThere(ttl time.Duration) string {
	locks, each := fmt.Sprintf("%d locks are held there", f.Locks.Count), "one of them "
	if f.Locks.Count == 1 {
		locks, each = "1 lock is held there", ""
	}
	ends := each + "without an end"
	if f.Locks.Left >= 0 {
		ends = fmt.Sprintf("for up to %v", f.Locks.Left.Round(time.Millisecond))
	}
	var names []string
	for _, key := range f.Locks.Keys {
		if key.Left < 0 || key.Left > ttl {
			names = append(names, fmt.Sprintf("%.100q", key.Name))
		}
	}
	return fmt.Sprintf("%s, %s, such as %s", locks, ends, strings.Join(names, " "))
}

// Knowing names the proxies that run on these masters and know of a longer TTL in use.
func Knowing(findings []Finding, ttl time.Duration) []string {
	found := map[string]bool{}
	for _, f := range findings {
		if f.report == nil {
			continue
		}
		for _, p := range f.report.Proxies {
			if p.Longest > ttl {
				found[fmt.Sprintf("the proxy %s knows of locks of up to %v", cmp.Or(p.Name, p.ID), p.Longest)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
