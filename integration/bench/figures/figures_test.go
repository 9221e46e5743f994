package figures

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want || !slices.Equal(before, c.values) {
			t.Errorf("median of %v: %v; want %v, and the values as they were: %v", before, got, c.want, c.values)
		}
	}
}

func TestRatioOf(t *testing.T) {
	for name, c := range map[string]struct {
		values, reference []float64
		want              Ratio
	}{
		"side by side": {[]float64{10, 20, 60}, []float64{10, 10, 10}, Ratio{Median: 2, Low: 1, High: 6, Known: true}},
		"medians of each": {[]float64{10, 30, 20}, []float64{40, 10, 20},
			Ratio{Median: 1, Low: 0.25, High: 3, Known: true}},
		"the other not run": {[]float64{1}, nil, Ratio{}},
		"ours not run":      {nil, []float64{1}, Ratio{}},
		"a round less":      {[]float64{1, 2}, []float64{1}, Ratio{}},
		"nothing got done":  {[]float64{1, 1}, []float64{1, 0}, Ratio{}},
	} {
		if got := RatioOf(c.values, c.reference); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		goal Goal
		is   Ratio
		want string
	}{
		{Goal{AtLeast, 10}, Ratio{Median: 10, Known: true}, VerdictMet},
		{Goal{AtLeast, 10}, Ratio{Median: 9.999, Known: true}, VerdictMissed},
		{Goal{AtMost, 1}, Ratio{Median: 1, Known: true}, VerdictMet},
		{Goal{AtMost, 1}, Ratio{Median: 1.001, Known: true}, VerdictMissed},
		{Goal{AtLeast, 10}, Ratio{Median: 20, Known: true, HasErrors: true}, VerdictErrors},
		{Goal{AtMost, 1}, Ratio{}, VerdictUnmeasured},
	} {
		if got := c.goal.Judge(c.is); got != c.want {
			t.Errorf("%+v against %v: %s; want %s", c.is, c.goal, got, c.want)
		}
	}
}

func TestTally(t *testing.T) {
	var tally Tally
	for _, verdict := range []string{VerdictMet, VerdictMissed, VerdictErrors, VerdictUnmeasured, VerdictMet} {
		if got := tally.Add(verdict); got != verdict {
			t.Errorf("%s was counted as %s", verdict, got)
		}
	}
	var out bytes.Buffer
	tally.Write(&out)
	if got := strings.TrimSpace(out.String()); got != "Goals: 2 met, 2 MISSED, 1 not measured." {
		t.Error(got)
	}
}

func TestWriteNoiseWarning(t *testing.T) {
	var out bytes.Buffer
	WriteNoiseWarning(&out, "quiet", 0.1)
	WriteNoiseWarning(&out, "loud", 0.26)
	if got, want := strings.TrimSpace(out.String()),
		"NOISE: other processes took up to 0.3 cores away from loud in a round."; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}

func TestCPUModel(t *testing.T) {
	if got := cpuModel("processor\t: 0\nmodel\t\t: 2\nmodel name\t: A CPU: fast\nprocessor\t: 1\n"); got != "A CPU: fast" {
		t.Errorf("%q", got)
	}
	if got := cpuModel("unknown"); got != unknown {
		t.Errorf("%q; want %q", got, unknown)
	}
}
