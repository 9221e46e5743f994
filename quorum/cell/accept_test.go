package cell

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestKeptExpiryStaysInRange checks that a value that keeps its expiry never expires earlier than
// the first cell did. Unless keys share the cell, it never expires later than the last cell did.
// This holds whichever changes masters miss, and however imprecise the measured expiry is.
func TestKeptExpiryStaysInRange(t *testing.T) {
	for seed := range uint64(1000) {
		checkExpiryKept(t, rand.New(rand.NewPCG(seed, 1)), seed%2 == 0)
	}
}

// checkExpiryKept lets random pairs of three masters change a value whose expiry differs by
// milliseconds.
func checkExpiryKept(t *testing.T, p *rand.Rand, shared bool) {
	t.Helper()
	randomDelay := func() time.Duration { return time.Duration(p.IntN(5)) * time.Millisecond }
	source := NumberedSource(big.NewInt(1))
	c := Cell{Form: Register, Attempt: source.Attempt(), Promised: source.Ballot(1), Value: Value{Present: true}}
	masters := make([]Store, 3)
	earliest, latest := 2*time.Hour, time.Duration(0)
	for m := range masters {
		ends := time.Hour + randomDelay()
		masters[m].Put("k", c, ends)
		earliest, latest = min(earliest, ends), max(latest, ends)
	}
	for change := range 30 {
		ballot, base := source.Ballot(uint64(change+2)), c.Value.LastChange()
		promised := p.Perm(len(masters))[:2]
		var timesLeft []time.Duration
		for _, m := range promised {
			Prepare{Name: "k", Ballot: ballot}.Apply(&masters[m])
			if f := masters[m].Get("k"); f.Value.LastChange() == base {
				timesLeft = append(timesLeft, f.TimeLeft)
			}
		}
		c.Value = c.Value.WithChange(c.Value, source.Change())
		for _, m := range promised {
			a := Accept{
				Name: "k", Attempt: c.Attempt, Ballot: ballot, Value: c.Value, KeepTTL: true, BaseChange: base,
				Shared: shared, Uncertainty: randomDelay(), Deadline: time.Hour,
			}
			if shared {
				a.Expiry = slices.Min(timesLeft) + a.Uncertainty
			} else {
				a.Expiry = slices.Max(timesLeft) - a.Uncertainty
			}
			if !a.Apply(&masters[m]).Applied {
				t.Fatal("a master that promised does not accept")
			}
			if ends := masters[m].Get("k").TimeLeft; ends < earliest || !shared && ends > latest {
				t.Fatalf("shared %v, %d changes: the end is %v, want %v to %v", shared, change+1, ends, earliest, latest)
			}
		}
	}
}
