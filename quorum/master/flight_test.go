package master

import (
	"testing"
	"time"
)

func TestExtendIfLate(t *testing.T) {
	const limit = 100 * time.Millisecond
	until := time.Now()
	for _, test := range []struct {
		what    string
		late    time.Duration
		before  bool // the deadline was extended before
		want    bool
		further time.Duration
	}{
		{"in time", -time.Millisecond, false, true, 0},
		{"in time, in the time that it was given", -time.Millisecond, true, true, 0},
		{"no answer", time.Millisecond, false, false, 0},
		{"the proxy stood still", 60 * time.Millisecond, false, true, 120 * time.Millisecond},
		{"for long", time.Second, false, true, 1100 * time.Millisecond},
		{"twice", 60 * time.Millisecond, true, false, 0},
	} {
		f := &Batch{deadline: until, extended: test.before}
		if got := f.extendIfLate(until.Add(test.late), limit); got != test.want || f.deadline != until.Add(test.further) {
			t.Errorf("%s: %v, and until %v later, want %v, %v", test.what, got, f.deadline.Sub(until), test.want,
				test.further)
		}
	}
}
