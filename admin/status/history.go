package status

import (
	"math"
	"sync"
	"time"

	"redlock-proxy/admin/metrics"
)

const (
	// samplePause is the time between two samples, and maxSamples how many are kept.
	samplePause = time.Second
	maxSamples  = 600
	// recent is how many samples a master's round trip is the mean of.
	recent = 10
)

// reading is what rates are made of: counts since the start.
type reading struct {
	at      time.Time
	relayed int64
	metrics.Totals
}

// sample is what came between two readings. What nothing reports is NaN.
type sample struct {
	// granted, refused, noQuorum and relayed are per second.
	granted, refused, noQuorum, relayed float64
	// p50 and p99 are seconds that a LOCK took.
	p50, p99 float64
	// trips are the batches of each master.
	trips []metrics.Sum
}

// between is the sample of two readings.
func between(before, now reading) sample {
	seconds := now.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		seconds = samplePause.Seconds()
	}
	took := now.Lock.Since(before.Lock)
	s := sample{
		granted: (now.Granted - before.Granted) / seconds, refused: (now.Refused - before.Refused) / seconds,
		noQuorum: (now.NoQuorum - before.NoQuorum) / seconds, relayed: float64(now.relayed-before.relayed) / seconds,
		p50: took.Quantile(.5), p99: took.Quantile(.99),
	}
	for i, sum := range now.RoundTrips {
		if i < len(before.RoundTrips) {
			sum = sum.Since(before.RoundTrips[i])
		}
		s.trips = append(s.trips, sum)
	}
	return s
}

// history are the last samples. It is safe for concurrent use.
type history struct {
	mu   sync.Mutex
	last reading
	ring []sample // of which the oldest stands at count % maxSamples once it is full
	// count is how many samples there were since the start.
	count int
}

// take adds the sample that ends with a reading. The first reading begins one.
func (h *history) take(now reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	h.last = now
	if before.at.IsZero() {
		return
	}
	s := between(before, now)
	if len(h.ring) < maxSamples {
		h.ring = append(h.ring, s)
	} else {
		h.ring[h.count%maxSamples] = s
	}
	h.count++
}

// after are the samples that came after the first so many, as far as they are kept, and how many
// there were until now.
func (h *history) after(count int) ([]sample, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.count - len(h.ring)
	if count < oldest || count > h.count { // more than there were: of a proxy from before
		count = oldest
	}
	var found []sample
	for i := count; i < h.count; i++ {
		found = append(found, h.ring[i%maxSamples])
	}
	return found, h.count
}

// roundTrip is the mean of a master's last batches in seconds, NaN where there were none.
func (h *history) roundTrip(master int) float64 {
	last, _ := h.after(max(0, h.total()-recent))
	var all metrics.Sum
	for _, s := range last {
		if master < len(s.trips) {
			all.Count += s.trips[master].Count
			all.Seconds += s.trips[master].Seconds
		}
	}
	return all.Mean()
}

func (h *history) total() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// number is a figure as JSON has it, with so many digits after the point; null where there is none.
func number(f float64, digits int) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	scale := math.Pow10(digits)
	f = math.Round(f*scale) / scale
	return &f
}
