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
	Median, Low, High float64 // ratio of the medians; lowest and highest ratio of a single round
	Known             bool    // both contenders ran, and the divisor is not zero
	HasErrors         bool    // a contender had errors
}

// RatioOf returns the ratio of the medians, and the range of the ratios of the single rounds. The
// ratio is not Known if the numbers of rounds differ or are 0, or if a reference is 0.
func RatioOf(values, reference []float64) Ratio {
	if len(values) == 0 || len(values) != len(reference) || slices.Contains(reference, 0) {
		return Ratio{}
	}
	each := make([]float64, len(values))
	for i := range values {
		each[i] = values[i] / reference[i]
	}
	return Ratio{Median: Median(values) / Median(reference), Low: slices.Min(each), High: slices.Max(each), Known: true}
}

// String returns two cells of a Markdown table: the ratio, and its range.
func (r Ratio) String() string {
	if !r.Known {
		return VerdictUnmeasured + " | "
	}
	return fmt.Sprintf("%.2f | %.2f–%.2f", r.Median, r.Low, r.High)
}
