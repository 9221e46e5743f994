package register

import (
	"math/big"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestTallyOfUndecidedCells checks that a master with an undecided copy may hold any attempt.
func TestTallyOfUndecidedCells(t *testing.T) {
	ids := cell.NumberedSource(big.NewInt(1))
	absent, undecided := cell.Cell{}, cell.Cell{Form: cell.Blocking, Attempt: cell.UndecidedAttempt}
	a := cell.Cell{Form: cell.Plain, Attempt: ids.Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	b := cell.Cell{Form: cell.Plain, Attempt: ids.Attempt(), Value: cell.Value{Present: true, Text: "b"}}
	for _, test := range []struct {
		name  string
		cells []cell.Cell
		want  TallyStatus
	}{
		{"two against two", []cell.Cell{a, a, b, b, undecided}, TallyUndetermined},
		{"one, and two undecided", []cell.Cell{a, undecided, undecided, absent, absent}, TallyUndetermined},
		{"three are undecided", []cell.Cell{undecided, undecided, undecided, absent, absent}, TallyUndetermined},
		{"a majority holds one", []cell.Cell{a, a, a, b, undecided}, TallyHeld},
		{"too few for any", []cell.Cell{a, b, undecided, absent, absent}, TallyAbsent},
	} {
		t.Run(test.name, func(t *testing.T) {
			var replies []Reply
			for _, c := range test.cells {
				replies = append(replies, reported(c, time.Minute))
			}
			if got := resolve(replies, 0).status; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestUndecidedIsNotLost checks that the lock does not count as lost on a master with an undecided
// copy.
func TestUndecidedIsNotLost(t *testing.T) {
	ids := cell.NumberedSource(big.NewInt(1))
	g := &grant{attempt: ids.Attempt(), holders: []bool{true, true}}
	found := func(a cell.Attempt) Reply { return reported(cell.Cell{Form: cell.Blocking, Attempt: a}, 0) }
	if n := g.countLostCells([]Reply{found(cell.UndecidedAttempt), found(ids.Attempt())}); n != 1 {
		t.Errorf("%d masters lost it, want 1", n)
	}
}
