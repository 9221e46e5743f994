package figures

import (
	"fmt"
	"slices"
)

// Median returns the middle value, the mean of the two middle values, or 0 without values. It does
// not change values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Ratio is one contender's figure divided by that of another contender.
type Ratio struct {
	Middle, Low, High float64 // of the medians; the lowest and highest ratio of a single round
	Known             bool    // both contenders ran, and the divisor is not zero
	Faulty            bool    // one of them had errors
}

// RatioOf returns the ratio of the medians, and the range of the ratios of the single rounds. It is
// not Known if the numbers of rounds differ.
func RatioOf(ours, theirs []float64) Ratio {
	if len(ours) == 0 || len(ours) != len(theirs) || slices.Contains(theirs, 0) {
		return Ratio{}
	}
	each := make([]float64, len(ours))
	for i := range ours {
		each[i] = ours[i] / theirs[i]
	}
	return Ratio{Middle: Median(ours) / Median(theirs), Low: slices.Min(each), High: slices.Max(each), Known: true}
}

// String returns two cells of a Markdown table: the ratio, and its range.
func (r Ratio) String() string {
	if !r.Known {
		return Unmeasured + " | "
	}
	return fmt.Sprintf("%.2f | %.2f–%.2f", r.Middle, r.Low, r.High)
}
