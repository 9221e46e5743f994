package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals holds counts of lock operations since the start. Two Totals give a rate.
type Totals struct {
	// Granted counts the granted requests for a lock, Refused the requests for a lock that another
	// client held. NoQuorum counts the operations of all kinds that ended with NOQUORUM.
	Granted, Refused, NoQuorum float64
	// LockDuration holds the durations of attempts to take a lock, except attempts that may wait
	// (BLOCK).
	LockDuration Histogram
	// RoundTrips holds the number and duration of the batches to each master, by its index.
	RoundTrips []Sum
}

// Sum holds a number of events, and their total duration in seconds.
type Sum struct{ Count, Seconds float64 }

// Histogram holds a histogram: CumulativeCounts[i] of Count events took at most Limits[i] seconds.
type Histogram struct {
	Sum
	Limits, CumulativeCounts []float64
}

// Totals returns the current counts.
func (m *Metrics) Totals() Totals {
	acquire := &m.meters.acquire
	t := Totals{
		Granted: counterValue(acquire.results[resultOK]), Refused: counterValue(acquire.results[resultHeld]), LockDuration: histogramOf(acquire.durations),
	}
	for _, each := range []*meter{acquire, &m.meters.release, &m.meters.extend, &m.meters.read, &m.meters.update} {
		t.NoQuorum += counterValue(each.results[resultNoQuorum])
	}
	if now := m.byMaster.Load(); now != nil {
		for _, trips := range *now {
			t.RoundTrips = append(t.RoundTrips, histogramOf(trips).Sum)
		}
	}
	return t
}

// counterValue returns the value of a counter.
func counterValue(c prometheus.Counter) float64 {
	var dtoMetric dto.Metric
	if c.Write(&dtoMetric) != nil {
		return 0
	}
	return dtoMetric.GetCounter().GetValue()
}

// histogramOf returns the values of a histogram.
func histogramOf(o prometheus.Observer) (s Histogram) {
	var now dto.Metric
	if metric, is := o.(prometheus.Metric); !is || metric.Write(&now) != nil {
		return s
	}
	h := now.GetHistogram()
	s.Sum = Sum{Count: float64(h.GetSampleCount()), Seconds: h.GetSampleSum()}
	for _, b := range h.GetBucket() {
		s.Limits, s.CumulativeCounts = append(s.Limits, b.GetUpperBound()), append(s.CumulativeCounts, float64(b.GetCumulativeCount()))
	}
	return s
}

// Since returns s minus before, an earlier state of the same histogram.
func (s Histogram) Since(before Histogram) Histogram {
	d := Histogram{Sum: s.Sum.Since(before.Sum), Limits: s.Limits, CumulativeCounts: make([]float64, len(s.CumulativeCounts))}
	for i := range s.CumulativeCounts {
		d.CumulativeCounts[i] = s.CumulativeCounts[i]
		if i < len(before.CumulativeCounts) {
			d.CumulativeCounts[i] -= before.CumulativeCounts[i]
		}
	}
	return d
}

// Since returns s minus before, an earlier state of the same sum.
func (s Sum) Since(before Sum) Sum { return Sum{s.Count - before.Count, s.Seconds - before.Seconds} }

// Mean returns the mean duration in seconds, or NaN without events.
func (s Sum) Mean() float64 {
	if s.Count <= 0 {
		return math.NaN()
	}
	return s.Seconds / s.Count
}

// Quantile returns the duration in seconds within which the share q of the events ended. It
// interpolates within a bucket, as Prometheus does. It returns NaN without events, and the highest
// limit if the quantile lies above it.
func (s Histogram) Quantile(q float64) float64 {
	if s.Count <= 0 || len(s.Limits) == 0 {
		return math.NaN()
	}
	rank, below, from := q*s.Count, 0.0, 0.0
	for i, limit := range s.Limits {
		if s.CumulativeCounts[i] >= rank && s.CumulativeCounts[i] > below {
			return from + (limit-from)*(rank-below)/(s.CumulativeCounts[i]-below)
		}
		below, from = s.CumulativeCounts[i], limit
	}
	return s.Limits[len(s.Limits)-1]
}
