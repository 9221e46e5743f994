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

// Result describes the outcome of a run.
type Result struct {
	// At is the location of the locks.
	At location.Place
	// AlreadyAtTarget is set if the locks were at the target before the run. Aborted is set if the
	// run aborted a move, NothingToAbort if there was no move to abort.
	AlreadyAtTarget, Aborted, NothingToAbort bool
	// CopyCounts counts the lock keys that have moved, by type.
	CopyCounts map[string]int
	// RemovedAtTarget counts the lock keys that the run removed because they existed only at the
	// target. Removed counts the lock keys that the run removed from the store without the locks.
	RemovedAtTarget, Removed int
	// Leftover counts the lock keys that the run found in the store without the locks.
	Leftover int
	// RemovalErr is the error that prevented the removal of the remaining lock keys, if any.
	RemovalErr error
	// KeepCause is the reason why the run kept the lock keys at the source, if it kept them.
	KeepCause error
	// ForeignConns describes the connections at the upstream that do not belong to proxies.
	// ClosedConns counts the connections that the run closed at the upstream.
	ForeignConns []string
	ClosedConns  int
	// PauseDuration is the approximate time for which proxies paused commands on lock keys.
	PauseDuration time.Duration
}

// Lines returns the report for an operator.
func (r Result) Lines() []string {
	switch {
	case r.Aborted:
		return []string{fmt.Sprintf("aborted: the locks stay at the %v", r.At)}
	case r.NothingToAbort:
		return []string{fmt.Sprintf("nothing to abort: the locks are at the %v, and no move has been decided; "+
			"if redlock-proxy move still checks both places, interrupt it", r.At)}
	case r.AlreadyAtTarget:
		return append([]string{fmt.Sprintf("nothing to move: the locks are at the %v", r.At)}, r.removalLines()...)
	}
	lines := []string{
		fmt.Sprintf("the locks are at the %v now: %s", r.At, r.copiedCounts()),
		fmt.Sprintf("commands on lock keys were paused for %d ms", r.PauseDuration.Milliseconds()),
	}
	if r.RemovedAtTarget > 0 {
		lines = append(lines, fmt.Sprintf("removed %s that existed only at the %v",
			syntax.Count(r.RemovedAtTarget, "lock key"), r.At))
	}
	lines = append(lines, r.removalLines()...)
	if r.ClosedConns > 0 {
		lines = append(lines, "closed "+syntax.Count(r.ClosedConns, "connection")+" at the upstream")
	}
	if len(r.ForeignConns) > 0 {
		lines = append(lines, "connections of clients without a proxy at the upstream: "+summarize(r.ForeignConns))
	}
	return lines
}

// copiedCounts returns the number of copied lock keys of each type.
func (r Result) copiedCounts() string {
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(r.CopyCounts)) {
		counts = append(counts, fmt.Sprintf("%d %s", r.CopyCounts[kind], kind))
	}
	if len(counts) == 0 {
		return "no lock keys existed"
	}
	return strings.Join(counts, ", ")
}

// removalLines returns the lines about lock keys in the store without the locks.
func (r Result) removalLines() []string {
	emptyStore := r.At.MovingPlace().Target()
	var lines []string
	if r.Leftover > 0 {
		lines = append(lines, fmt.Sprintf("found %s at the %v: an earlier move left them, or clients use them directly; "+
			"--even-if-others (EVENIFOTHERS) removes them", syntax.Count(r.Leftover, "lock key"), emptyStore))
	}
	if r.KeepCause != nil {
		lines = append(lines, fmt.Sprintf("kept the lock keys at the %v: %v; check whether the %v has the locks; "+
			"the same command with --even-if-others removes the kept ones", emptyStore, r.KeepCause, r.At))
	}
	if r.Removed > 0 {
		lines = append(lines, fmt.Sprintf("removed %s from the %v", syntax.Count(r.Removed, "lock key"), emptyStore))
	}
	if r.RemovalErr != nil {
		lines = append(lines, fmt.Sprintf("cannot remove the lock keys left at the %v, which have no effect: %v; "+
			"the same command with --even-if-others removes them", emptyStore, r.RemovalErr))
	}
	return lines
}
