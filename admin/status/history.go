package status

import (
	"math"
	"sync"
	"time"

	"redlock-proxy/admin/metrics"
)

const (
	// sampleInterval is the time between two samples.
	sampleInterval = time.Second
	// maxSamples is the maximum number of samples in memory.
	maxSamples = 600
	// roundTripSamples is the number of samples in the mean round trip of a master.
	roundTripSamples = 10
)

// snapshot holds counts since the start. The difference of two snapshots is a sample.
type snapshot struct {
	at              time.Time
	relayedCommands int64
	metrics.Totals
}

// sample describes the time between two snapshots. A value without data is NaN.
type sample struct {
	// granted, refused, noQuorum and relayedCommands are per second.
	granted, refused, noQuorum, relayedCommands float64
	// p50 and p99 are quantiles of the duration of LOCK in seconds.
	p50, p99 float64
	// roundTrips holds the number and duration of the batches to each master.
	roundTrips []metrics.Sum
}

// newSample returns the sample between two snapshots.
func newSample(before, now snapshot) sample {
	seconds := now.at.Sub(before.at).Seconds()
	if seconds <= 0 {
		seconds = sampleInterval.Seconds()
	}
	took := now.LockDuration.Since(before.LockDuration)
	s := sample{
		granted:         (now.Granted - before.Granted) / seconds,
		refused:         (now.Refused - before.Refused) / seconds,
		noQuorum:        (now.NoQuorum - before.NoQuorum) / seconds,
		relayedCommands: float64(now.relayedCommands-before.relayedCommands) / seconds,
		p50:             took.Quantile(.5),
		p99:             took.Quantile(.99),
	}
	for i, sum := range now.RoundTrips {
		if i < len(before.RoundTrips) {
			sum = sum.Since(before.RoundTrips[i])
		}
		s.roundTrips = append(s.roundTrips, sum)
	}
	return s
}

// history holds the recent samples. It is safe for concurrent use.
type history struct {
	mu           sync.Mutex
	lastSnapshot snapshot
	ring         []sample // once full, the oldest sample is at count % maxSamples
	// count is the number of samples since the start.
	count int
}

// add adds the sample between the last snapshot and newest. The first snapshot only begins a
// sample.
func (h *history) add(newest snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.lastSnapshot
	h.lastSnapshot = newest
	if before.at.IsZero() {
		return
	}
	s := newSample(before, newest)
	if len(h.ring) < maxSamples {
		h.ring = append(h.ring, s)
	} else {
		h.ring[h.count%maxSamples] = s
	}
	h.count++
}

// samplesAfter returns the samples that follow the first count samples and are still in memory. It
// also returns the number of samples since the start.
func (h *history) samplesAfter(count int) ([]sample, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	oldest := h.count - len(h.ring)
	// count is too large if it comes from an earlier process.
	if count < oldest || count > h.count {
		count = oldest
	}
	var result []sample
	for i := count; i < h.count; i++ {
		result = append(result, h.ring[i%maxSamples])
	}
	return result, h.count
}

// roundTrip returns the mean round trip of a master's recent batches in seconds, or NaN.
func (h *history) roundTrip(master int) float64 {
	last, _ := h.samplesAfter(max(0, h.sampleCount()-roundTripSamples))
	var total metrics.Sum
	for _, s := range last {
		if master < len(s.roundTrips) {
			total.Count += s.roundTrips[master].Count
			total.Seconds += s.roundTrips[master].Seconds
		}
	}
	return total.Mean()
}

func (h *history) sampleCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// jsonNumber returns a value for JSON, rounded to this number of digits after the point; nil for
// NaN and infinity.
func jsonNumber(f float64, digits int) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	scale := math.Pow10(digits)
	f = math.Round(f*scale) / scale
	return &f
}
