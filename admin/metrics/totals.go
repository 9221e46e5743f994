package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are what was counted around the locks since the start, for who compares two of them.
type Totals struct {
	// Granted and Refused are locks that were taken, and that another held. NoQuorum are operations
	// of all kinds that ended so.
	Granted, Refused, NoQuorum float64
	// Lock is how long taking a lock took, without those that may wait.
	Lock Spread
	// RoundTrips are the batches of each master, by number.
	RoundTrips []Sum
}

// Sum is how many there were, and how many seconds they took together.
type Sum struct{ Count, Seconds float64 }

// Spread is a histogram: up to Limits[i] seconds took Within[i] of Count.
type Spread struct {
	Sum
	Limits, Within []float64
}

// Totals are those of now.
func (m *Metrics) Totals() Totals {
	acquire := &m.meters.acquire
	t := Totals{Granted: valueOf(acquire.ended[ok]), Refused: valueOf(acquire.ended[held]), Lock: spreadOf(acquire.took)}
	for _, each := range []*meter{acquire, &m.meters.release, &m.meters.extend, &m.meters.read, &m.meters.update} {
		t.NoQuorum += valueOf(each.ended[noQuorum])
	}
	if now := m.perMaster.Load(); now != nil {
		for _, trips := range *now {
			t.RoundTrips = append(t.RoundTrips, spreadOf(trips).Sum)
		}
	}
	return t
}

// valueOf reads a counter.
func valueOf(c prometheus.Counter) float64 {
	var now dto.Metric
	if c.Write(&now) != nil {
		return 0
	}
	return now.GetCounter().GetValue()
}

// spreadOf reads a histogram.
func spreadOf(o prometheus.Observer) (s Spread) {
	var now dto.Metric
	if metric, is := o.(prometheus.Metric); !is || metric.Write(&now) != nil {
		return s
	}
	h := now.GetHistogram()
	s.Sum = Sum{Count: float64(h.GetSampleCount()), Seconds: h.GetSampleSum()}
	for _, b := range h.GetBucket() {
		s.Limits, s.Within = append(s.Limits, b.GetUpperBound()), append(s.Within, float64(b.GetCumulativeCount()))
	}
	return s
}

// Since is what came after another one of the same.
func (s Spread) Since(before Spread) Spread {
	d := Spread{Sum: s.Sum.Since(before.Sum), Limits: s.Limits, Within: make([]float64, len(s.Within))}
	for i := range s.Within {
		d.Within[i] = s.Within[i]
		if i < len(before.Within) {
			d.Within[i] -= before.Within[i]
		}
	}
	return d
}

// Since is what came after another one of the same.
func (s Sum) Since(before Sum) Sum { return Sum{s.Count - before.Count, s.Seconds - before.Seconds} }

// Mean is their mean in seconds, or NaN if there were none.
func (s Sum) Mean() float64 {
	if s.Count <= 0 {
		return math.NaN()
	}
	return s.Seconds / s.Count
}

// Quantile is, in seconds, what the share q of them took at the most, evened out within a bucket as
// Prometheus does it: NaN if there were none, and the highest limit for what lies above all.
func (s Spread) Quantile(q float64) float64 {
	if s.Count <= 0 || len(s.Limits) == 0 {
		return math.NaN()
	}
	rank, below, from := q*s.Count, 0.0, 0.0
	for i, limit := range s.Limits {
		if s.Within[i] >= rank && s.Within[i] > below {
			return from + (limit-from)*(rank-below)/(s.Within[i]-below)
		}
		below, from = s.Within[i], limit
	}
	return s.Limits[len(s.Limits)-1]
}
