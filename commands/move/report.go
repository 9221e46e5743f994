package move

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/place"
)

// Result is what a run did.
type Result struct {
	// At is where the locks are.
	At place.Place
	// Already is set where they were there before, and Aborted where a move was ended.
	Already, Aborted bool
	// Copied counts the lock keys that have moved, by their types.
	Copied map[string]int
	// Besides is how many lock keys were removed that were only where the locks have moved to,
	// Removed how many where they are not any more.
	Besides, Removed int
	// Standing is how many lock keys were found where the locks are not.
	Standing int
	// Left is why not all were removed there; nil: they were.
	Left error
	// Others are connections of others at the upstream, Ended how many connections were ended
	// there.
	Others []string
	Ended  int
	// Held is for how long commands on lock keys were held back.
	Held time.Duration
}

// Lines is the result for an operator.
func (r Result) Lines() []string {
	switch {
	case r.Aborted:
		return []string{fmt.Sprintf("given up: the locks stay at the %v", r.At)}
	case r.Already:
		return append([]string{fmt.Sprintf("nothing to move: the locks are at the %v", r.At)}, r.removed()...)
	}
	lines := []string{
		fmt.Sprintf("the locks are at the %v now: %s", r.At, r.copied()),
		fmt.Sprintf("commands on lock keys were held back for %d ms", r.Held.Milliseconds()),
	}
	if r.Besides > 0 {
		lines = append(lines, fmt.Sprintf("%d lock keys were left there by others, and are removed", r.Besides))
	}
	lines = append(lines, r.removed()...)
	if r.Ended > 0 {
		lines = append(lines, fmt.Sprintf("%d connections at the upstream were ended", r.Ended))
	}
	if len(r.Others) > 0 {
		lines = append(lines, "of others at the upstream: "+some(r.Others))
	}
	return lines
}

// copied is how many of each type.
func (r Result) copied() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(r.Copied)) {
		all = append(all, fmt.Sprintf("%d %s", r.Copied[kind], kind))
	}
	if len(all) == 0 {
		return "there was none"
	}
	return strings.Join(all, ", ")
}

func (r Result) removed() []string {
	var lines []string
	if r.Standing > 0 {
		lines = append(lines, fmt.Sprintf("%d lock keys exist where the locks are not: a move that was not finished left them, or clients lock there; --even-if-others (EVENIFOTHERS) removes them", r.Standing))
	}
	if r.Removed > 0 {
		lines = append(lines, fmt.Sprintf("%d lock keys are removed where they were", r.Removed))
	}
	if r.Left != nil {
		lines = append(lines, fmt.Sprintf("what is left where they were is not removed, and means nothing: %v; the same command with --even-if-others removes it", r.Left))
	}
	return lines
}
