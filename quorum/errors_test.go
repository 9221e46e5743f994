package quorum

import (
	"slices"
	"testing"
	"time"
)

// The time that a NOQUORUM tells is when there is a majority again, not when the last master votes.
func TestUntilEnough(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		left   []time.Duration
		needed int
		want   time.Duration
	}{
		{[]time.Duration{9 * s}, 1, 9 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 2, 7 * s},
		{[]time.Duration{9 * s, 5 * s, 7 * s}, 1, 5 * s},
		{[]time.Duration{9 * s, 5 * s}, 3, 9 * s}, // others are down as well: all of these are needed
		{[]time.Duration{0, 5 * s, 0}, 1, 5 * s},
		{[]time.Duration{0, 5 * s, 0}, 2, 0}, // of the second it is not known
		{[]time.Duration{9 * s, 5 * s}, 0, 5 * s},
	} {
		if got := untilEnough(slices.Clone(c.left), c.needed); got != c.want {
			t.Errorf("%v, %d needed: %v, want %v", c.left, c.needed, got, c.want)
		}
	}
}
