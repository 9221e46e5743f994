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

// ErrNotNeeded is the result of CheckOverride if a majority votes: the remaining masters then catch
// up without an override.
var ErrNotNeeded = errors.New("a majority of the masters votes")

// RefusedError means that CheckOverride refuses an operator's override.
type RefusedError struct {
	// Reasons holds one entry for each master with obstacles, and possibly the advice to use --force.
	Reasons []string
}

// Error returns the joined reasons.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "; ") }

// CheckOverride decides whether to accept an operator's override. An override declares that the
// locks that these masters may have lost were granted for at most ttl. All masters must be
// reachable and fit. Unless forced is set, no master may hold a lock that contradicts the
// declaration. The findings must come from Survey. CheckOverride returns nil, ErrNotNeeded, or a
// *RefusedError.
func CheckOverride(findings []Finding, ttl time.Duration, forced bool) error {
	var reasons []string
	hasLongerLock := false
	votes := 0
	for _, f := range findings {
		switch {
		case f.Err != nil:
			reasons = append(reasons, fmt.Sprintf("%s: %v", f.Name, f.Err))
		case len(f.SafetyProblems) > 0:
			reasons = append(reasons, f.Name+": "+strings.Join(f.SafetyProblems, ", "))
		case f.Locks.Outlasts(ttl) && !forced:
			hasLongerLock = true
			reasons = append(reasons, fmt.Sprintf("%s: %s", f.Name, f.describeLocks(ttl)))
		}
		if f.Votes && f.Err == nil && len(f.SafetyProblems) == 0 {
			votes++
		}
	}
	switch {
	case votes >= vote.Majority(len(findings)):
		return ErrNotNeeded
	case len(reasons) > 0:
		if hasLongerLock {
			reasons = append(reasons, "if no client holds these locks any more, use --force")
		}
		return &RefusedError{reasons}
	default:
		return nil
	}
}

// describeLocks describes the locks on a master, and names the locks that last longer than ttl.
func (f Finding) describeLocks(ttl time.Duration) string {
	locks, prefix := fmt.Sprintf("it holds %d locks", f.Locks.Count), "one of them "
	if f.Locks.Count == 1 {
		locks, prefix = "it holds 1 lock", ""
	}
	duration := prefix + "without a TTL"
	if longest := f.Locks.Keys[0].Left; longest >= 0 {
		duration = fmt.Sprintf("for up to %v", longest.Round(time.Millisecond))
	}
	var names []string
	for _, key := range f.Locks.Keys {
		if key.Left < 0 || key.Left > ttl {
			names = append(names, fmt.Sprintf("%.100q", key.Name))
		}
	}
	return fmt.Sprintf("%s, %s, such as %s", locks, duration, strings.Join(names, " "))
}

// ProxiesWithLongerTTL describes the proxies that these masters list with a known TTL in use above
// ttl.
func ProxiesWithLongerTTL(findings []Finding, ttl time.Duration) []string {
	found := map[string]bool{}
	for _, f := range findings {
		if f.report == nil {
			continue
		}
		for _, p := range f.report.Proxies {
			if p.LongestTTL > ttl {
				name := cmp.Or(p.Name, p.ID)
				found[fmt.Sprintf("proxy %s knows of locks with a TTL of up to %v", name, p.LongestTTL)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
