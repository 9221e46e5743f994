package reconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Choose is what a ballot has to have accepted that was promised by a majority: what was accepted
// in the highest ballot before, or what its proposer wants if nothing was.
func Choose(promised []Seal, wanted Change) Change {
	var highest Seal
	for _, s := range promised {
		if !s.IsNone() && s.Ballot > highest.Ballot {
			highest = s
		}
	}
	if highest.IsNone() {
		return wanted
	}
	return highest.Change
}

// Step is why masters cannot follow others in one step, or nil. One may be added, removed or
// replaced by another at a time: so every majority of the new set has more masters than the
// requests of an attempt that was refused, or a lock that was released, can still reach.
func Step(from, to []string) error {
	var gone, come []string
	for _, name := range from {
		if !slices.Contains(to, name) {
			gone = append(gone, name)
		}
	}
	for _, name := range to {
		if !slices.Contains(from, name) {
			come = append(come, name)
		}
	}
	switch {
	case len(gone) > 1 || len(come) > 1 || len(to) == 0:
		return fmt.Errorf("one master can be added, removed or replaced at a time: %s would go, %s would come", list(gone), list(come))
	case len(gone) == len(from):
		return errors.New("none of the masters would stay")
	}
	return nil
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
