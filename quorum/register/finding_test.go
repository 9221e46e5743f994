package register

import (
	"math/big"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// TestUndecidedMayBeAny: a master with an undecided copy may hold any of the others' attempts, as
// one that does not answer.
func TestUndecidedMayBeAny(t *testing.T) {
	ids := cell.NumberedSource(big.NewInt(1))
	none, undecided := cell.Cell{}, cell.Cell{Form: cell.Blocking, Attempt: cell.Undecided}
	a := cell.Cell{Form: cell.Plain, Attempt: ids.Attempt(), Value: cell.Value{Present: true, Text: "a"}}
	b := cell.Cell{Form: cell.Plain, Attempt: ids.Attempt(), Value: cell.Value{Present: true, Text: "b"}}
	for _, test := range []struct {
		name  string
		cells []cell.Cell
		want  Standing
	}{
		{"two against two", []cell.Cell{a, a, b, b, undecided}, Open},
		{"one, and two undecided", []cell.Cell{a, undecided, undecided, none, none}, Open},
		{"three are undecided", []cell.Cell{undecided, undecided, undecided, none, none}, Open},
		{"a majority holds one", []cell.Cell{a, a, a, b, undecided}, Held},
		{"too few for any", []cell.Cell{a, b, undecided, none, none}, Absent},
	} {
		t.Run(test.name, func(t *testing.T) {
			var replies []Reply
			for _, c := range test.cells {
				replies = append(replies, Reply{State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: c, Left: time.Minute}}}})
			}
			if got := resolve(replies, 0).standing; got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestUndecidedIsNotLost: where a master that took a lock has an undecided copy now, it may be that
// lock.
func TestUndecidedIsNotLost(t *testing.T) {
	ids := cell.NumberedSource(big.NewInt(1))
	g := &grant{attempt: ids.Attempt(), holders: []bool{true, true}}
	found := func(a cell.Attempt) Reply {
		return Reply{State: Counted, Answer: cell.Answer{Found: []cell.Found{{Cell: cell.Cell{Form: cell.Blocking, Attempt: a}}}}}
	}
	if n := g.lost([]Reply{found(cell.Undecided), found(ids.Attempt())}); n != 1 {
		t.Errorf("%d masters lost it, want 1", n)
	}
}
