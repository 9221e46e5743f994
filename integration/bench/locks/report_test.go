package locks

import (
	"bytes"
	"testing"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/golden"
)

func TestJudgeOrder(t *testing.T) {
	for want, o := range map[string]outcome{
		figures.VerdictMet:    {order: serviceOrder{grants: 9}},
		figures.VerdictMissed: {order: serviceOrder{grants: 9, overtakenRequests: 1}},
		figures.VerdictErrors: {order: serviceOrder{grants: 9}, errors: map[string]int{"x": 1}},
	} {
		if got := judgeOrder(o); got != want {
			t.Errorf("%+v: %s; want %s", o, got, want)
		}
	}
	if got := judgeOrder(outcome{}); got != figures.VerdictMissed {
		t.Errorf("no grants at all: %s; want %s", got, figures.VerdictMissed)
	}
}

func TestRatioOf(t *testing.T) {
	kind := ratioKind{"r", nameProxy, nameRedsync, rateOf}
	rounds := func(rates ...float64) []outcome {
		var all []outcome
		for _, r := range rates {
			all = append(all, outcome{rate: r})
		}
		return all
	}
	failed := rounds(1)
	failed[0].errors = map[string]int{"x": 1}
	for name, c := range map[string]struct {
		numerator, denominator []outcome
		want                   figures.Ratio
	}{
		"side by side": {rounds(10, 20, 60), rounds(10, 10, 10), figures.Ratio{Median: 2, Low: 1, High: 6,
			Known: true}},
		"with errors": {failed, rounds(2), figures.Ratio{Median: 0.5, Low: 0.5, High: 0.5, Known: true,
			HasErrors: true}},
		"the other not run": {rounds(1), nil, figures.Ratio{}},
		"ours not run":      {nil, rounds(1), figures.Ratio{}},
		"nothing got done":  {rounds(1), rounds(0), figures.Ratio{}},
	} {
		if got := ratioOf(results{nameProxy: c.numerator, nameRedsync: c.denominator}, kind); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// TestReportLayout checks that the report of invented figures equals the golden file, which shows
// the layout and the verdicts.
func TestReportLayout(t *testing.T) {
	one := func(rate float64, o outcome) []outcome {
		o.rate, o.lockP50, o.lockP99, o.pairP50, o.pairP99 = rate, 1*ms, 2*ms, 3*ms, 4*ms
		o.cpu = cpuPerPair{load: 1, proxy: 2, masters: 3, total: 6}
		return []outcome{o}
	}
	r := results{
		nameProxy:   one(500, outcome{order: serviceOrder{grants: 8, maxTurnsWaited: 1, fewestGrants: 4, mostGrants: 4}}),
		nameRedsync: one(100, outcome{otherCores: 0.5}),
		nameDirect:  one(900, outcome{errors: map[string]int{"often": 2, "rarely": 1}}),
	}
	ofLockKeys := results{nameProxy: r[nameProxy], nameLockKeys: one(400, outcome{})}
	var out bytes.Buffer
	sum := &figures.Tally{}
	for _, s := range allScenarios()[2:] {
		writeScenario(&out, clientRaw, s, r, sum)
	}
	writeRatios(&out, allScenarios()[2], ofLockKeys, sum)
	sum.Write(&out)
	writeMachine(&out, figures.Machine{CPU: "A CPU", System: "linux 1.2", Load: "0.5", Go: "go1", Redis: "7", Cores: 2},
		settings{masters: 5, rounds: 1, window: ms, commandLine: "go run ./integration/bench locks -rounds 1"})
	golden.Want(t, "testdata/report.md", out.Bytes())
}
