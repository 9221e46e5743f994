package figures

import (
	"slices"
	"time"
)

// Percentile returns the p-th percentile, or 0 without values. The p-th percentile is the smallest
// value for which at least p per cent of the values are not greater. Percentile sorts values in
// place.
func Percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := (len(values)*p + 99) / 100
	return values[max(rank, 1)-1]
}

// Millis returns a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
