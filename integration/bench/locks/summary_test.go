package locks

import (
	"bytes"
	"testing"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/golden"
)

// TestSummaryLayout checks that the table of invented figures equals the golden file, which
// contains all goals of Summary.
func TestSummaryLayout(t *testing.T) {
	one := func(rate float64, o outcome) []outcome {
		o.rate, o.lockP50 = rate, 2*ms
		o.cpu = cpuPerPair{proxy: 25, masters: 30}
		return []outcome{o}
	}
	near := scenarioResults{
		"c1":    {nameProxy: one(300, outcome{}), nameRedsync: one(300, outcome{}), nameDirect: one(900, outcome{})},
		"c64":   {nameProxy: one(600, outcome{}), nameRedsync: one(100, outcome{}), nameDirect: one(900, outcome{})},
		"c256":  {nameProxy: one(500, outcome{})},
		"c1024": {nameProxy: one(600, outcome{errors: map[string]int{"x": 1}})},
	}
	far := scenarioResults{"c16": near["c1"]}
	var out bytes.Buffer
	figures.WriteLines(&out, append(localLines(near), latencyLines(far)...), &figures.Tally{})
	golden.Want(t, "testdata/summary.md", out.Bytes())
	curves := curvesOf(near)
	if len(curves) != 2 || len(curves[0].XValues) != 4 || curves[0].YValues[1][0] != 600 || curves[1].YValues[0][1] != 2 {
		t.Errorf("%+v", curves)
	}
}
