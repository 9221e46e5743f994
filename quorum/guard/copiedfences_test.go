package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func fenceAt(text string, left time.Duration) heldCell {
	return heldCell{cell.Parse(text), now.Add(left)}
}

// TestFences checks that each counter gets its highest value, with the expiry on that value's
// source. Locks and values that are not counters are ignored, and locks ignore counters.
func TestFences(t *testing.T) {
	k, l, m := cell.FenceKey("k"), cell.FenceKey("l"), cell.FenceKey("m")
	views := []view{
		{k: fenceAt("9", time.Hour), l: fenceAt("1700000000000000", time.Minute), "k": plain(attemptA, time.Minute)},
		{k: fenceAt("10", time.Minute), m: fenceAt("9007199254740990", time.Minute), "12": foreign("12")},
		{k: fenceAt("none", time.Hour), "k": plain(attemptA, time.Minute)},
	}
	var got []string
	steps, ahead := copiedFences(views, 1_700_000_000*time.Second)
	if ahead[1] != m || len(ahead) != 1 {
		t.Errorf("ahead: %v", ahead)
	}
	for _, s := range steps {
		got = append(got, fmt.Sprint(s.Act, " ", s.Key, " ", s.Held.String(), " ", s.Held.Ends.Sub(now)))
	}
	slices.Sort(got)
	if want := []string{"raise " + k + " 10 1m0s", "raise " + l + " 1700000000000000 1m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	locks := newCopy(copyPolicy{Masters: 5, Sources: 3}, false, -1, view{}, views)
	for key := range locks.first {
		if isFence(key) {
			t.Errorf("%s is copied as a lock", key)
		}
	}
}
