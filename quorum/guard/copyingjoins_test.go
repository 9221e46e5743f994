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
	own := view{}
	maps.Copy(own, views[0])
	k := newCopy(policy, false, 0, own, views)
	steps, _ := k.Pass(own, views)
	again, _ := k.Pass(own, views) // steps that the first pass postponed
	return append(steps, again...)
}

func acts(steps []copyStep) string {
	text := ""
	for _, s := range steps {
		text += fmt.Sprintf("%s %d;", s.Act, s.Held.Form)
	}
	return text
}

// TestJoins checks the copy for one of three masters that is a source and has lost nothing.
func TestJoins(t *testing.T) {
	a, b, none := plain(attemptA, time.Minute), plain(attemptB, time.Minute), heldCell{}
	for _, test := range []struct {
		name    string
		sources []heldCell
		want    string
	}{
		{"it and another hold it", []heldCell{a, a, none}, fmt.Sprintf("copy %d;", cell.Plain)},
		{"the others hold it", []heldCell{none, a, a}, fmt.Sprintf("put %d;", cell.Plain)},
		{"the others hold it, and it another one", []heldCell{b, a, a}, fmt.Sprintf("put %d;", cell.Plain)},
		{"it alone holds it, all are read", []heldCell{a, none, none}, fmt.Sprintf("drop %d;", cell.Plain)},
		{"it alone holds it, one is not read", []heldCell{a, none}, ""},
		{"another holds it, one is not read", []heldCell{none, a}, fmt.Sprintf("put %d;", cell.Blocking)},
		{"it and another hold one each, one is not read", []heldCell{a, b}, ""},
		{"another holds it, and an undecided copy of another set's",
			[]heldCell{none, a, blocking(incarnation(cell.Undecided), a)}, fmt.Sprintf("put %d;", cell.Blocking)},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := joinSteps(copyPolicy{Masters: 3, Sources: len(test.sources)}, viewsWith("k", test.sources...))
			if got := acts(steps); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestJoinsUndecided checks that a key with several possible incarnations gets an undecided copy in
// place of the joining master's own cell. Otherwise later copies would treat the remaining
// incarnations as leftovers.
func TestJoinsUndecided(t *testing.T) {
	a, b := plain(attemptA, time.Minute), plain(attemptB, time.Minute)
	views := viewsWith("k", a, a, b, b)
	own := view{"k": a}
	k := newCopy(blockingPolicy(5, 4), false, 0, own, views)
	steps, _ := k.Pass(own, views)
	if len(steps) != 1 || !steps[0].Held.IsUndecided() {
		t.Fatalf("it does %v", steps)
	}
	own = view{"k": steps[0].Held}
	views[0] = own
	for range 2 {
		if steps, settled := k.Pass(own, views); len(steps) > 0 || !settled {
			t.Errorf("it does %v, settled %v", steps, settled)
		}
	}
}

// TestCopiesDoNotCount checks that a copied cell does not prove that the master held it.
func TestCopiesDoNotCount(t *testing.T) {
	a := plain(attemptA, time.Minute)
	views := viewsWith("k", heldCell{}, a, a)
	k := newCopy(copyPolicy{Masters: 3, Sources: 3}, false, 0, view{}, views)
	k.Pass(view{}, views)
	steps, settled := k.Pass(view{"k": a}, viewsWith("k", a, a, heldCell{})) // one source has released it since
	if acts(steps) != fmt.Sprintf("drop %d;", cell.Plain) {
		t.Errorf("it does %q (settled %v)", acts(steps), settled)
	}
}

// TestJoinedHoldsWhatMayBeGranted tries all holders and all sources for up to seven masters. A
// master that joins has every attempt that a majority granted, in full or as a blocking copy.
func TestJoinedHoldsWhatMayBeGranted(t *testing.T) {
	a := plain(attemptA, time.Minute)
	for n := 1; n <= 7; n++ {
		for holders := range 1 << n {
			for sources := 1; sources < 1<<n; sources += 2 { // master 0 is a source
				held, read := bits.OnesCount(uint(holders)), bits.OnesCount(uint(sources))
				if held < vote.Majority(n) || read < vote.ReadQuorum(n) {
					continue
				}
				var seen []heldCell
				for m := range n {
					switch {
					case sources>>m&1 == 0:
					case holders>>m&1 == 1:
						seen = append(seen, a)
					default:
						seen = append(seen, heldCell{})
					}
				}
				steps := joinSteps(copyPolicy{Masters: n, Sources: read}, viewsWith("k", seen...))
				has := holders&1 == 1
				for _, s := range steps {
					has = s.Act != actDrop
				}
				if !has {
					t.Fatalf("%d masters, held by %b, read %b: %s", n, holders, sources, acts(steps))
				}
			}
		}
	}
}
