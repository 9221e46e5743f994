package figures

import (
	"fmt"
	"io"
)

// Direction is the kind of a bound: lower or upper.
type Direction string

// The directions, in their printed form.
const (
	AtLeast Direction = "≥"
	AtMost  Direction = "≤"
)

// Goal is a bound for a ratio or a single figure.
type Goal struct {
	Direction Direction
	Bound     float64
}

// String returns the goal as text, such as "≥ 10".
func (g Goal) String() string { return fmt.Sprintf("%s %g", g.Direction, g.Bound) }

// The verdicts on goals.
const (
	VerdictMet        = "met"
	VerdictMissed     = "MISSED"
	VerdictErrors     = "MISSED (errors)"
	VerdictUnmeasured = "not measured"
)

// Judge compares the median of a ratio with the goal and returns the verdict. A run with errors
// meets no goal.
func (g Goal) Judge(r Ratio) string {
	switch {
	case r.HasErrors:
		return VerdictErrors
	case !r.Known:
		return VerdictUnmeasured
	case g.Direction == AtLeast && r.Median >= g.Bound, g.Direction == AtMost && r.Median <= g.Bound:
		return VerdictMet
	}
	return VerdictMissed
}

// Tally counts verdicts.
type Tally struct{ met, missed, unmeasured int }

// Add counts one verdict and returns it.
func (t *Tally) Add(verdict string) string {
	switch verdict {
	case VerdictMet:
		t.met++
	case VerdictUnmeasured:
		t.unmeasured++
	default:
		t.missed++
	}
	return verdict
}

// Write prints the counts.
func (t *Tally) Write(w io.Writer) {
	fmt.Fprintf(w, "\nGoals: %d met, %d MISSED, %d not measured.\n", t.met, t.missed, t.unmeasured)
}

// noiseLimit is the number of cores that other processes may use without a warning.
const noiseLimit = 0.1

// WriteNoiseWarning warns if cores exceeds noiseLimit. cores is the largest number of cores that
// other processes used in a round of the contender.
func WriteNoiseWarning(w io.Writer, contender string, cores float64) {
	if cores > noiseLimit {
		fmt.Fprintf(w, "\nNOISE: other processes took up to %.1f cores away from %s in a round.\n", cores, contender)
	}
}
