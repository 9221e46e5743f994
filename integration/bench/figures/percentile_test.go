package figures

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		values []time.Duration
		p      int
		want   time.Duration
	}{
		{nil, 50, 0},
		{[]time.Duration{7}, 50, 7},
		{[]time.Duration{7}, 99, 7},
		{[]time.Duration{9, 1}, 50, 1},
		{[]time.Duration{3, 1, 2}, 50, 2},
		{[]time.Duration{3, 1, 2}, 99, 3},
		{hundred, 50, 50},
		{hundred, 99, 99},
	} {
		if got := Percentile(slices.Clone(c.values), c.p); got != c.want {
			t.Errorf("p%d of %v: %d; want %d", c.p, c.values, got, c.want)
		}
	}
}

// TestPercentileByItsDefinition checks Percentile against its definition, with random values.
func TestPercentileByItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]time.Duration, 1+random.IntN(300))
		for i := range values {
			values[i] = time.Duration(random.IntN(50))
		}
		p := 1 + random.IntN(99)
		got := Percentile(values, p)
		upTo, below := 0, 0
		for _, v := range values {
			if v <= got {
				upTo++
			}
			if v < got {
				below++
			}
		}
		if upTo*100 < p*len(values) || below*100 >= p*len(values) {
			t.Fatalf("p%d of %d values is %d: %d are not above it, %d below", p, len(values), got, upTo, below)
		}
	}
}
