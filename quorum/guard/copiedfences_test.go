package guard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

func fenceCell(text string, timeLeft time.Duration) storedCell {
	return storedCell{cell.Parse(text), testStart.Add(timeLeft)}
}

// TestFenceSteps checks that each counter gets its highest credible value, with the expiry on that
// value's source. fenceSteps ignores locks and values that are not counters, and the copy of locks
// ignores counters.
func TestFenceSteps(t *testing.T) {
	fenceK, fenceL, fenceM := cell.FenceKey("k"), cell.FenceKey("l"), cell.FenceKey("m")
	views := []view{
		{fenceK: fenceCell("9", time.Hour), fenceL: fenceCell("1700000000000000", time.Minute), "k": plainCell(attemptA, time.Minute)},
		{fenceK: fenceCell("10", time.Minute), fenceM: fenceCell("9007199254740990", time.Minute), "12": foreignCell("12")},
		{fenceK: fenceCell("none", time.Hour), "k": plainCell(attemptA, time.Minute)},
	}
	var got []string
	steps, ahead := fenceSteps(views, 1_700_000_000*time.Second)
	if ahead[1] != fenceM || len(ahead) != 1 {
		t.Errorf("ahead: %v", ahead)
	}
	for _, s := range steps {
		got = append(got, fmt.Sprint(s.Act, " ", s.Key, " ", s.Cell.String(), " ", s.Cell.Expiry.Sub(testStart)))
	}
	slices.Sort(got)
	if want := []string{"raise " + fenceK + " 10 1m0s", "raise " + fenceL + " 1700000000000000 1m0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	lockCopy := newKeysCopy(copyPolicy{Masters: 5, Sources: 3}, false, -1, view{}, views)
	for key := range lockCopy.initial {
		if isFence(key) {
			t.Errorf("%s is copied as a lock", key)
		}
	}
}
