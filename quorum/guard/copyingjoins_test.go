package guard

import (
	"fmt"
	"maps"
	"math/bits"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/vote"
)

// joinSteps starts a copy for a master that is itself source number 0, and returns the steps of two
// passes.
func joinSteps(policy copyPolicy, views []view) []copyStep {
	ownCells := view{}
	maps.Copy(ownCells, views[0])
	k := newKeysCopy(policy, false, 0, ownCells, views)
	steps, _ := k.RunPass(ownCells, views)
	postponed, _ := k.RunPass(ownCells, views) // the first pass may postpone steps
	return append(steps, postponed...)
}

func describeActs(steps []copyStep) string {
	text := ""
	for _, s := range steps {
		text += fmt.Sprintf("%s %d;", s.Act, s.Cell.Form)
	}
	return text
}

// TestCopyForJoiningMaster checks the copy for a master, one of three, that has lost nothing and is
// itself a source.
func TestCopyForJoiningMaster(t *testing.T) {
	a, b, none := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute), storedCell{}
	for _, test := range []struct {
		name    string
		sources []storedCell
		want    string
	}{
		{"it and another hold it", []storedCell{a, a, none}, fmt.Sprintf("copy %d;", cell.Plain)},
		{"the others hold it", []storedCell{none, a, a}, fmt.Sprintf("put %d;", cell.Plain)},
		{"the others hold it, and it another one", []storedCell{b, a, a}, fmt.Sprintf("put %d;", cell.Plain)},
		{"it alone holds it, all are read", []storedCell{a, none, none}, fmt.Sprintf("drop %d;", cell.Plain)},
		{"it alone holds it, one is not read", []storedCell{a, none}, ""},
		{"another holds it, one is not read", []storedCell{none, a}, fmt.Sprintf("put %d;", cell.Blocking)},
		{"it and another hold one each, one is not read", []storedCell{a, b}, ""},
		{"another holds it, and an undecided copy of another set's",
			[]storedCell{none, a, blockingCopy(cell.UndecidedAttempt, a.Expiry)}, fmt.Sprintf("put %d;", cell.Blocking)},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := joinSteps(copyPolicy{Masters: 3, Sources: len(test.sources)}, viewsWith("k", test.sources...))
			if got := describeActs(steps); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestJoiningMasterGetsUndecidedCopy checks that a key with several possible incarnations gets an
// undecided copy in place of the joining master's own cell. Otherwise later copies would treat the
// remaining incarnations as leftovers.
func TestJoiningMasterGetsUndecidedCopy(t *testing.T) {
	a, b := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute)
	views := viewsWith("k", a, a, b, b)
	ownCells := view{"k": a}
	k := newKeysCopy(blockingPolicy(5, 4), false, 0, ownCells, views)
	steps, _ := k.RunPass(ownCells, views)
	if len(steps) != 1 || !steps[0].Cell.IsUndecided() {
		t.Fatalf("it does %v", steps)
	}
	ownCells = view{"k": steps[0].Cell}
	views[0] = ownCells
	for range 2 {
		if steps, settled := k.RunPass(ownCells, views); len(steps) > 0 || !settled {
			t.Errorf("it does %v, settled %v", steps, settled)
		}
	}
}

// TestCopiedCellIsNoProof checks that a copied cell does not count as a cell that the master held
// before.
func TestCopiedCellIsNoProof(t *testing.T) {
	a := plainCell(attemptA, time.Minute)
	views := viewsWith("k", storedCell{}, a, a)
	k := newKeysCopy(copyPolicy{Masters: 3, Sources: 3}, false, 0, view{}, views)
	k.RunPass(view{}, views)
	// One source has released the lock since the first pass.
	steps, settled := k.RunPass(view{"k": a}, viewsWith("k", a, a, storedCell{}))
	if describeActs(steps) != fmt.Sprintf("drop %d;", cell.Plain) {
		t.Errorf("it does %q (settled %v)", describeActs(steps), settled)
	}
}

// TestJoiningMasterGetsPossibleGrants tries all sets of holders and of sources among up to seven
// masters. A master that joins must hold every attempt that a majority granted, in full or as a
// blocking copy.
func TestJoiningMasterGetsPossibleGrants(t *testing.T) {
	a := plainCell(attemptA, time.Minute)
	for n := 1; n <= 7; n++ {
		for holders := range 1 << n {
			for sources := 1; sources < 1<<n; sources += 2 { // master 0 is a source
				holderCount, sourceCount := bits.OnesCount(uint(holders)), bits.OnesCount(uint(sources))
				if holderCount < vote.Majority(n) || sourceCount < vote.ReadQuorum(n) {
					continue
				}
				var sourceCells []storedCell
				for m := range n {
					switch {
					case sources>>m&1 == 0:
					case holders>>m&1 == 1:
						sourceCells = append(sourceCells, a)
					default:
						sourceCells = append(sourceCells, storedCell{})
					}
				}
				steps := joinSteps(copyPolicy{Masters: n, Sources: sourceCount}, viewsWith("k", sourceCells...))
				hasCopy := holders&1 == 1
				for _, s := range steps {
					hasCopy = s.Act != actDrop
				}
				if !hasCopy {
					t.Fatalf("%d masters, held by %b, read %b: %s", n, holders, sources, describeActs(steps))
				}
			}
		}
	}
}

// TestCopyForReconnectedMaster checks the copy for a master that was unreachable during a change of
// the era. It has lost nothing, but has no vote in this era yet. A blocking copy does not replace
// its own cell.
func TestCopyForReconnectedMaster(t *testing.T) {
	a, b, none := plainCell(attemptA, time.Minute), plainCell(attemptB, time.Minute), storedCell{}
	for _, test := range []struct {
		name    string
		policy  copyPolicy
		ownCell storedCell
		sources []storedCell
		want    string
	}{
		{"it and another hold it", copyPolicy{Masters: 3, Intact: true}, a, []storedCell{a, none}, ""},
		{"the same, and it lost its data", copyPolicy{Masters: 3}, a, []storedCell{a, none},
			fmt.Sprintf("put %d;", cell.Blocking)},
		{"another holds it", copyPolicy{Masters: 3, Intact: true}, none, []storedCell{a, none},
			fmt.Sprintf("put %d;", cell.Blocking)},
		{"it holds another one", copyPolicy{Masters: 3, Intact: true}, b, []storedCell{a, none},
			fmt.Sprintf("put %d;", cell.Blocking)},
		{"it alone holds it", copyPolicy{Masters: 3, Intact: true}, a, []storedCell{none, none},
			fmt.Sprintf("drop %d;", cell.Plain)},
		{"a majority of three holds it, in a set of four", copyPolicy{Masters: 4, FormerMasters: 3}, none,
			[]storedCell{a, a}, fmt.Sprintf("put %d;", cell.Plain)},
		{"two of four hold it", copyPolicy{Masters: 4}, none, []storedCell{a, a}, fmt.Sprintf("put %d;", cell.Blocking)},
		{"one of three holds it, in a set of four", copyPolicy{Masters: 4, FormerMasters: 3}, none,
			[]storedCell{a, none}, fmt.Sprintf("put %d;", cell.Blocking)},
		{"two of five hold it, in a set of four", copyPolicy{Masters: 4, FormerMasters: 5}, none,
			[]storedCell{a, a}, fmt.Sprintf("put %d;", cell.Blocking)},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.policy.Sources = len(test.sources)
			ownCells := viewsWith("k", test.ownCell)[0]
			k := newKeysCopy(test.policy, false, -1, ownCells, viewsWith("k", test.sources...))
			steps, _ := k.RunPass(ownCells, viewsWith("k", test.sources...))
			// The first pass may postpone steps.
			postponed, _ := k.RunPass(ownCells, viewsWith("k", test.sources...))
			if len(steps) == 0 {
				steps = postponed
			}
			if got := describeActs(steps); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
