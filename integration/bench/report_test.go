package main

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		goal goal
		is   ratio
		want string
	}{
		{goal{side: atLeast, bound: 10}, ratio{middle: 10, known: true}, met},
		{goal{side: atLeast, bound: 10}, ratio{middle: 9.999, known: true}, missed},
		{goal{side: atMost, bound: 1}, ratio{middle: 1, known: true}, met},
		{goal{side: atMost, bound: 1}, ratio{middle: 1.001, known: true}, missed},
		{goal{side: atLeast, bound: 10}, ratio{middle: 20, known: true, faulty: true}, broken},
		{goal{side: atMost, bound: 1}, ratio{}, unmeasured},
	} {
		if got := c.goal.judge(c.is); got != c.want {
			t.Errorf("%+v against %+v: %s; want %s", c.is, c.goal, got, c.want)
		}
	}
}

func TestJudgeTurns(t *testing.T) {
	for want, o := range map[string]outcome{
		met:    {turns: turns{grants: 9}},
		missed: {turns: turns{grants: 9, overtaken: 1}},
		broken: {turns: turns{grants: 9}, errors: map[string]int{"x": 1}},
	} {
		if got := judgeTurns(o); got != want {
			t.Errorf("%+v: %s; want %s", o, got, want)
		}
	}
	if got := judgeTurns(outcome{}); got != missed {
		t.Errorf("no grants at all: %s; want %s", got, missed)
	}
}

func TestRatioOf(t *testing.T) {
	kind := ratioKind{"r", nameRedsync, rate}
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
		ours, theirs []outcome
		want         ratio
	}{
		"side by side":      {rounds(10, 20, 60), rounds(10, 10, 10), ratio{middle: 2, low: 1, high: 6, known: true}},
		"with errors":       {failed, rounds(2), ratio{middle: 0.5, low: 0.5, high: 0.5, known: true, faulty: true}},
		"the other not run": {rounds(1), nil, ratio{}},
		"ours not run":      {nil, rounds(1), ratio{}},
		"nothing got done":  {rounds(1), rounds(0), ratio{}},
	} {
		if got := ratioOf(results{nameProxy: c.ours, nameRedsync: c.theirs}, kind); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// TestReportLayout prints invented figures; the golden file shows the layout and the verdicts.
func TestReportLayout(t *testing.T) {
	one := func(rate float64, o outcome) []outcome {
		o.rate, o.lock50, o.lock99, o.pair50, o.pair99 = rate, 1*ms, 2*ms, 3*ms, 4*ms
		o.cpu = cpuPerPair{load: 1, proxy: 2, masters: 3, total: 6}
		return []outcome{o}
	}
	r := results{
		nameProxy:   one(500, outcome{turns: turns{grants: 8, most: 1, least: 4, greatest: 4}}),
		nameRedsync: one(100, outcome{others: 0.5}),
		nameDirect:  one(900, outcome{errors: map[string]int{"often": 2, "rarely": 1}}),
	}
	var out bytes.Buffer
	sum := &tally{}
	for _, s := range allScenarios()[2:] {
		writeScenario(&out, clientRaw, s, r, sum)
	}
	sum.write(&out)
	writeMachine(&out, machine{cpu: "A CPU", system: "linux 1.2", load: "0.5", golang: "go1", redis: "7", cores: 2}, settings{masters: 5, rounds: 1, window: ms}, []string{"-rounds", "1"})
	wantGolden(t, "testdata/report.md", out.Bytes())
}

func wantGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (go test -rewrite writes it anew):\n%s", path, got)
	}
}
