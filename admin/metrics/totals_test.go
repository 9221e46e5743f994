package metrics

import (
	"math"
	"testing"
	"time"
)

func TestTotals(t *testing.T) {
	m := New("1")
	trip := m.RoundTripRecorder([]string{"a", "b"})
	before := m.Totals()
	m.meters.acquire.record(t.Context(), time.Now(), new(error))
	m.meters.update.results[resultNoQuorum].Inc()
	m.meters.acquire.results[resultHeld].Inc()
	trip(1, 2*time.Second)
	trip(1, 4*time.Second)
	now := m.Totals()
	if now.Granted-before.Granted != 1 || now.Refused-before.Refused != 1 || now.NoQuorum-before.NoQuorum != 1 {
		t.Errorf("from %+v to %+v", before, now)
	}
	if got := now.LockDuration.Since(before.LockDuration); got.Count != 1 || got.Quantile(.5) <= 0 {
		t.Errorf("one LOCK: %+v", got)
	}
	if got := now.RoundTrips[1].Since(before.RoundTrips[1]).Mean(); got != 3 {
		t.Errorf("the mean is %v, want 3", got)
	}
	if got := now.RoundTrips[0].Mean(); !math.IsNaN(got) {
		t.Errorf("the mean of nothing is %v", got)
	}
}

func TestQuantile(t *testing.T) {
	limits := []float64{1, 2, 4}
	for _, c := range []struct {
		cumulative []float64
		count      float64
		q          float64
		want       float64
	}{
		{[]float64{0, 0, 0}, 0, .5, math.NaN()},
		{[]float64{10, 10, 10}, 10, .5, .5},
		{[]float64{10, 20, 20}, 20, .75, 1.5},
		{[]float64{0, 0, 10}, 10, 1, 4},
		{[]float64{0, 0, 0}, 10, .5, 4}, // above the highest limit
		{[]float64{5, 5, 10}, 10, .99, 3.96},
	} {
		got := Histogram{Sum{Count: c.count}, limits, c.cumulative}.Quantile(c.q)
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%v of %v: got %v, want %v", c.q, c.cumulative, got, c.want)
		}
	}
	if got := (Histogram{}).Quantile(.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}
