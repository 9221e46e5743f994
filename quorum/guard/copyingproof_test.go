package guard

import (
	"fmt"
	"math/bits"
	"testing"

	"redlock-proxy/quorum/vote"
)

// TestSourcesMeetEveryMajority checks that a master that lost its data may copy from any
// vote.ReadQuorum(n) masters that vote. For every majority that granted a lock with the lost
// master's vote, and every set of other masters in quarantine, one of the sources was in that
// majority. One source fewer is not enough.
func TestSourcesMeetEveryMajority(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			missed := false
			for granted := range uint(1) << n {
				if bits.OnesCount(granted) < vote.Majority(n) {
					continue
				}
				for lostMaster := range n {
					if granted&(1<<lostMaster) != 0 {
						missed = tryAllSources(t, n, granted, lostMaster) || missed
					}
				}
			}
			if n > 2 && !missed {
				t.Error("one source less would be enough, too")
			}
		})
	}
}

// tryAllSources tries all sets of sources, and so all sets of masters in quarantine. It reports
// whether one source fewer than needed can miss the granting majority.
func tryAllSources(t *testing.T, n int, granted uint, lostMaster int) (missed bool) {
	for quarantined := range uint(1) << n {
		if quarantined&(1<<lostMaster) == 0 {
			continue
		}
		voting := (uint(1)<<n - 1) &^ quarantined
		for sources := voting; sources != 0; sources = (sources - 1) & voting {
			switch intersects := sources&granted != 0; {
			case bits.OnesCount(sources) >= vote.ReadQuorum(n) && !intersects:
				t.Fatalf("granted %b, forgot %d: the sources %b miss it", granted, lostMaster, sources)
			case bits.OnesCount(sources) == vote.ReadQuorum(n)-1 && !intersects:
				missed = true
			}
		}
	}
	return missed
}

// TestMajorityAmongSourcesMeetsEveryMajority checks that any two majorities share a master. So if a
// majority of all masters, among the sources, holds one value, no majority still holds a lock with
// a different value.
func TestMajorityAmongSourcesMeetsEveryMajority(t *testing.T) {
	for _, n := range []int{3, 5, 7} {
		for granted := range uint(1) << n {
			for holders := range uint(1) << n {
				enough := bits.OnesCount(granted) >= vote.Majority(n) && bits.OnesCount(holders) >= vote.Majority(n)
				if enough && granted&holders == 0 {
					t.Fatalf("n %d: %b and %b do not meet", n, granted, holders)
				}
			}
		}
	}
}
