package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

const (
	// slowPackages and slowTests are how many are told of at the end, if they took as long as slowTime, in seconds.
	slowPackages, slowTests = 5, 10
	slowTime                = 5
)

// timed is what has ended, and the seconds that it took.
type timed struct {
	name    string
	elapsed float64
}

// slowest are those that took longest, the longest first.
type slowest []timed

// add keeps one if it is among the n that took longest.
func (s *slowest) add(one timed, n int) {
	if one.elapsed < slowTime {
		return
	}
	*s = append(*s, one)
	slices.SortStableFunc(*s, func(a, b timed) int { return cmp.Compare(b.elapsed, a.elapsed) })
	*s = (*s)[:min(n, len(*s))]
}

// tell lists them.
func (s slowest) tell(out io.Writer, what string) {
	if len(s) == 0 {
		return
	}
	fmt.Fprintf(out, "\nthe slowest %s\n", what)
	for _, one := range s {
		fmt.Fprintf(out, "  %7.1fs  %s\n", one.elapsed, one.name)
	}
}
