package vote

import (
	"testing"
	"time"
)

// TestMajority checks that any two majorities of n masters share a master, and that a smaller
// number would not suffice.
func TestMajority(t *testing.T) {
	for n := 1; n <= 9; n++ {
		if q := Majority(n); 2*q <= n || 2*(q-1) > n {
			t.Errorf("a majority of %d is not %d", n, q)
		}
	}
}

func TestValidity(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct{ ttl, elapsed, want time.Duration }{
		{10_000 * ms, 0, 9898 * ms},
		{10_000 * ms, 98 * ms, 9800 * ms},
		{100 * ms, 0, 97 * ms},
		{MinTTL, 0, MinTTL - 2*ms - 40*time.Microsecond},
		{100 * ms, 200 * ms, -103 * ms},
		{-1, time.Hour, -1}, // no expiry
	} {
		if got := Validity(test.ttl, test.elapsed); got != test.want {
			t.Errorf("%v, after %v: %v, want %v", test.ttl, test.elapsed, got, test.want)
		}
	}
	if Validity(MinTTL, 0) < ms || Validity(MinTTL-ms, 0) >= ms {
		t.Errorf("%v is not the shortest", MinTTL)
	}
}
