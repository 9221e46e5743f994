package relay

import (
	"bytes"
	"testing"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/golden"
)

// TestReportLayout prints invented figures; the golden file shows the layout and the verdicts.
func TestReportLayout(t *testing.T) {
	rounds := func(rates ...float64) (all []outcome) {
		for i, r := range rates {
			all = append(all, outcome{figure: figure{rate: r, p50: 0.5, p99: 1.5}, cpu: 1000 / r, serverCPU: 2,
				others: float64(i) / 4})
		}
		return all
	}
	r := results{
		{"SET", 1, false}: {nameDirect: rounds(400, 500, 300), nameProxy: rounds(100, 220, 200),
			nameHAProxy: rounds(100, 200, 300)},
		{"GET", 1, false}: {nameDirect: rounds(400), nameProxy: rounds(89), nameHAProxy: rounds(100),
			nameNutcracker: rounds(50)},
		{"SET", 16, false}: {nameProxy: rounds(100)},
	}
	var out bytes.Buffer
	tally := &figures.Tally{}
	set := settings{rounds: 3, clients: 50, requests: 100, idlers: 10, atOnce: 64, settle: time.Second, connects: 1000}
	writeSpeed(&out, set, r, tally)
	writeIdle(&out, set, 8, map[string]weight{
		nameProxy:   {clients: 8, before: 1 << 20, after: 2 << 20, descriptors: 16},
		nameHAProxy: {clients: 8, before: 1 << 20, after: 3 << 19, descriptors: 16, others: 0.2},
	}, tally)
	flat := soak{looks: []look{{descriptors: 7, rss: 1 << 20}, {done: 100, descriptors: 9, rss: 5 << 20,
		took: time.Second}, {done: 1000, descriptors: 9, rss: 13 << 20, took: 2 * time.Second}}}
	flat.write(&out, set, tally)
	leaky := soak{looks: flat.looks, errors: map[string]int{"refused": 2}}
	leaky.write(&out, set, tally)
	tally.Write(&out)
	golden.Want(t, "testdata/report.md", out.Bytes())
}

func TestSoakVerdicts(t *testing.T) {
	var out bytes.Buffer
	for name, c := range map[string]struct {
		last   look
		errors map[string]int
		want   figures.Tally
	}{
		"flat": {look{done: 1000, rss: 20<<20 + flatGrowth, descriptors: 5 + flatDescriptors}, nil,
			tallyOf(figures.Met, figures.Met)},
		"memory grows": {look{done: 1000, rss: 20<<20 + flatGrowth + 1, descriptors: 5}, nil,
			tallyOf(figures.Met, figures.Missed)},
		"files stay": {look{done: 1000, rss: 20 << 20, descriptors: 6 + flatDescriptors}, nil,
			tallyOf(figures.Met, figures.Missed)},
		"clients failed": {look{done: 1000, rss: 20 << 20, descriptors: 5}, map[string]int{"x": 1},
			tallyOf(figures.Broken, figures.Broken)},
	} {
		s := soak{looks: []look{{rss: 1 << 20, descriptors: 5}, {done: 100, rss: 20 << 20, descriptors: 6}, c.last},
			errors: c.errors}
		var got figures.Tally
		if s.writeGoals(&out, &got); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

func tallyOf(verdicts ...string) (t figures.Tally) {
	for _, verdict := range verdicts {
		t.Add(verdict)
	}
	return t
}
