package master

import (
	"testing"
	"time"
)

func TestExtendIfLate(t *testing.T) {
	const limit = 100 * time.Millisecond
	deadline := time.Now()
	for _, test := range []struct {
		name          string
		lateness      time.Duration
		wasExtended   bool // the deadline was extended before
		want          bool
		wantExtension time.Duration
	}{
		{"in time", -time.Millisecond, false, true, 0},
		{"in time after an extension", -time.Millisecond, true, true, 0},
		{"no answer", time.Millisecond, false, false, 0},
		{"the proxy was stopped", 60 * time.Millisecond, false, true, 120 * time.Millisecond},
		{"the proxy was stopped for long", time.Second, false, true, 1100 * time.Millisecond},
		{"the proxy was stopped twice", 60 * time.Millisecond, true, false, 0},
	} {
		f := &Batch{deadline: deadline, extended: test.wasExtended}
		if got := f.extendIfLate(deadline.Add(test.lateness), limit); got != test.want || f.deadline != deadline.Add(test.wantExtension) {
			t.Errorf("%s: %v, and until %v later, want %v, %v", test.name, got, f.deadline.Sub(deadline), test.want,
				test.wantExtension)
		}
	}
}
