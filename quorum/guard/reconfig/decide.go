package reconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Choose returns the change that a ballot must propose after a majority promised it. That is the
// change accepted in the highest earlier ballot, or the proposal if no change was accepted.
func Choose(promisedSeals []Seal, proposal Change) Change {
	var highestSeal Seal
	for _, s := range promisedSeals {
		if !s.IsNone() && s.Ballot > highestSeal.Ballot {
			highestSeal = s
		}
	}
	if highestSeal.IsNone() {
		return proposal
	}
	return highestSeal.Change
}

// CheckStep returns the reason why the masters cannot be changed in one step, or nil. One step may
// add, remove or replace only one master. So late requests of a refused attempt, or of a released
// lock, reach fewer masters than any majority of the new set has.
func CheckStep(from, to []string) error {
	var removedNames, addedNames []string
	for _, name := range from {
		if !slices.Contains(to, name) {
			removedNames = append(removedNames, name)
		}
	}
	for _, name := range to {
		if !slices.Contains(from, name) {
			addedNames = append(addedNames, name)
		}
	}
	switch {
	case len(removedNames) > 1 || len(addedNames) > 1 || len(to) == 0:
		return fmt.Errorf("only one master can be added, removed or replaced at a time: "+
			"this change removes %s and adds %s", joinNames(removedNames), joinNames(addedNames))
	case len(removedNames) == len(from):
		return errors.New("at least one of the masters must stay")
	}
	return nil
}

func joinNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
