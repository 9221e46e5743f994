package quorum

import (
	"fmt"
	"math/bits"
	"testing"
)

// TestSourcesMeetEveryMajority shows that a master which forgot may copy from any
// sourcesNeeded(n) masters that vote: whatever majority granted a lock with its vote,
// and whichever others are in quarantine, one of the sources was in that majority. And
// that one source less is not enough.
func TestSourcesMeetEveryMajority(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			missed := false
			for majority := range uint(1) << n {
				if bits.OnesCount(majority) < Majority(n) {
					continue
				}
				for forgot := range n {
					if majority&(1<<forgot) != 0 {
						missed = allSources(t, n, majority, forgot) || missed
					}
				}
			}
			if n > 2 && !missed {
				t.Error("one source less would be enough, too")
			}
		})
	}
}

// allSources tries all sets of sources, which leave all sets of others in quarantine. It
// reports whether one less than needed can miss the majority.
func allSources(t *testing.T, n int, majority uint, forgot int) (missed bool) {
	for quarantined := range uint(1) << n {
		if quarantined&(1<<forgot) == 0 {
			continue
		}
		voting := (uint(1)<<n - 1) &^ quarantined
		for sources := voting; sources != 0; sources = (sources - 1) & voting {
			switch meets := sources&majority != 0; {
			case bits.OnesCount(sources) >= sourcesNeeded(n) && !meets:
				t.Fatalf("majority %b, forgot %d: the sources %b miss it", majority, forgot, sources)
			case bits.OnesCount(sources) == sourcesNeeded(n)-1 && !meets:
				missed = true
			}
		}
	}
	return missed
}

// TestMajorityAmongSourcesIsNoLoser: if a majority of all masters, among the sources,
// holds one value, then no lock with another value that the master agreed to is alive:
// a master of its majority that votes would hold that.
func TestMajorityAmongSourcesIsNoLoser(t *testing.T) {
	for _, n := range []int{3, 5, 7} {
		for majority := range uint(1) << n {
			for holders := range uint(1) << n {
				enough := bits.OnesCount(majority) >= Majority(n) && bits.OnesCount(holders) >= Majority(n)
				if enough && majority&holders == 0 {
					t.Fatalf("n %d: %b and %b do not meet", n, majority, holders)
				}
			}
		}
	}
}
