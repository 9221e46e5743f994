package cell

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestEndsStayWhereTheyAre checks that a value that keeps its expiry never expires earlier than on
// the first master, and, unless keys share the cell, never later than on the last. This holds
// whichever changes masters miss, and however imprecise the measured expiry is.
func TestEndsStayWhereTheyAre(t *testing.T) {
	for seed := range uint64(1000) {
		keepEnds(t, rand.New(rand.NewPCG(seed, 1)), seed%2 == 0)
	}
}

// keepEnds lets random pairs of three masters change a value whose expiry differs by milliseconds.
func keepEnds(t *testing.T, p *rand.Rand, shared bool) {
	t.Helper()
	some := func() time.Duration { return time.Duration(p.IntN(5)) * time.Millisecond }
	source := NumberedSource(big.NewInt(1))
	c := Cell{Form: Register, Attempt: source.Attempt(), Promised: source.Ballot(1), Value: Value{Present: true}}
	masters := make([]Store, 3)
	first, last := 2*time.Hour, time.Duration(0)
	for m := range masters {
		ends := time.Hour + some()
		masters[m].Put("k", c, ends)
		first, last = min(first, ends), max(last, ends)
	}
	for change := range 30 {
		ballot, base := source.Ballot(uint64(change+2)), c.Value.Last()
		promised := p.Perm(len(masters))[:2]
		var holders []time.Duration
		for _, m := range promised {
			Prepare{Name: "k", Ballot: ballot}.Apply(&masters[m])
			if f := masters[m].Look("k"); f.Value.Last() == base {
				holders = append(holders, f.Left)
			}
		}
		c.Value = c.Value.Follow(c.Value, source.Change())
		for _, m := range promised {
			a := Accept{
				Name: "k", Attempt: c.Attempt, Ballot: ballot, Value: c.Value, Keep: true, Base: base,
				Shared: shared, Near: some(), Deadline: time.Hour,
			}
			if shared {
				a.Until = slices.Min(holders) + a.Near
			} else {
				a.Until = slices.Max(holders) - a.Near
			}
			if !a.Apply(&masters[m]).Did {
				t.Fatal("a master that promised does not accept")
			}
			if ends := masters[m].Look("k").Left; ends < first || !shared && ends > last {
				t.Fatalf("shared %v, %d changes: the end is %v, want %v to %v", shared, change+1, ends, first, last)
			}
		}
	}
}
