package figures

import (
	"slices"
	"time"
)

// Percentile returns the smallest value that at least p per cent do not exceed; 0 when there is
// none. It sorts values.
func Percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := (len(values)*p + 99) / 100
	return values[max(rank, 1)-1]
}

// Millis is a duration in milliseconds.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
