package move

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/quorum/location"
)

// Result is the outcome of a run.
type Result struct {
	// At is where the locks are.
	At location.Place
	// Already is set if the locks were at the target before the run, Aborted if the run aborted a
	// move.
	Already, Aborted bool
	// Copied counts the lock keys that have moved, by type.
	Copied map[string]int
	// RemovedAtTarget counts the lock keys that were removed because they existed only at the
	// target. Removed counts the lock keys that were removed from the store without the locks.
	RemovedAtTarget, Removed int
	// Leftover counts the lock keys that were found in the store without the locks.
	Leftover int
	// RemovalErr is the error that prevented the removal of the remaining lock keys, if any.
	RemovalErr error
	// ForeignConns describes the connections at the upstream that do not belong to proxies. Ended
	// counts the connections that the run closed at the upstream.
	ForeignConns []string
	Ended        int
	// PausedFor is the time for which proxies paused commands on lock keys.
	PausedFor time.Duration
}

// Lines returns the report for an operator.
func (r Result) Lines() []string {
	switch {
	case r.Aborted:
		return []string{fmt.Sprintf("aborted: the locks stay at the %v", r.At)}
	case r.Already:
		return append([]string{fmt.Sprintf("nothing to move: the locks are at the %v", r.At)}, r.removed()...)
	}
	lines := []string{
		fmt.Sprintf("the locks are at the %v now: %s", r.At, r.copied()),
		fmt.Sprintf("commands on lock keys were held back for %d ms", r.PausedFor.Milliseconds()),
	}
	if r.RemovedAtTarget > 0 {
		lines = append(lines, fmt.Sprintf("removed %s that existed only at the %v",
			syntax.Count(r.RemovedAtTarget, "lock key"), r.At))
	}
	lines = append(lines, r.removed()...)
	if r.Ended > 0 {
		lines = append(lines, "closed "+syntax.Count(r.Ended, "connection")+" at the upstream")
	}
	if len(r.ForeignConns) > 0 {
		lines = append(lines, "connections of clients without a proxy at the upstream: "+summarize(r.ForeignConns))
	}
	return lines
}

// copied returns the number of copied lock keys of each type.
func (r Result) copied() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(r.Copied)) {
		all = append(all, fmt.Sprintf("%d %s", r.Copied[kind], kind))
	}
	if len(all) == 0 {
		return "no lock keys existed"
	}
	return strings.Join(all, ", ")
}

// removed returns the lines about lock keys in the store without the locks.
func (r Result) removed() []string {
	former := r.At.Departure().Target()
	var lines []string
	if r.Leftover > 0 {
		lines = append(lines, fmt.Sprintf("found %s at the %v: an unfinished move left them, or clients lock there; "+
			"--even-if-others (EVENIFOTHERS) removes them", syntax.Count(r.Leftover, "lock key"), former))
	}
	if r.Removed > 0 {
		lines = append(lines, fmt.Sprintf("removed %s from the %v", syntax.Count(r.Removed, "lock key"), former))
	}
	if r.RemovalErr != nil {
		lines = append(lines, fmt.Sprintf("cannot remove the lock keys left at the %v, which have no effect: %v; "+
			"the same command with --even-if-others removes them", former, r.RemovalErr))
	}
	return lines
}
