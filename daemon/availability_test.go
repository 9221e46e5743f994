package daemon

import (
	"testing"
	"time"

	"redlock-proxy/quorum/availability"
)

// TestAvailabilityWatch checks that update reports once that locks became unavailable, and once
// that they are available again. It does not report a single failed check, or a planned step.
func TestAvailabilityWatch(t *testing.T) {
	const available, paused, no = availability.Available, availability.Paused, availability.Unavailable
	now, watch := time.Now(), availabilityWatch{}
	for i, c := range []struct {
		state    availability.State
		want     transition
		downtime time.Duration
	}{
		{available, noChange, 0}, {no, noChange, 0}, {available, noChange, 0},
		{no, noChange, 0}, {no, becameUnavailable, 0}, {no, noChange, 0}, {no, noChange, 0},
		{available, becameAvailable, 4 * time.Second},
		{available, noChange, 0}, {no, noChange, 0}, {no, becameUnavailable, 0}, {available, becameAvailable, 2 * time.Second},
		{paused, noChange, 0}, {paused, noChange, 0}, {available, noChange, 0},
		{no, noChange, 0}, {paused, noChange, 0}, {no, noChange, 0}, {no, becameUnavailable, 0}, {paused, noChange, 0},
		{available, becameAvailable, 3 * time.Second},
	} {
		change, downtime := watch.update(c.state, now.Add(time.Duration(i)*time.Second))
		if change != c.want || downtime != c.downtime {
			t.Errorf("check %d: got %v after %v, want %v after %v", i, change, downtime, c.want, c.downtime)
		}
	}
}
