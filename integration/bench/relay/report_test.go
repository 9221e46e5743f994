package relay

import (
	"bytes"
	"testing"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/golden"
)

// TestReportLayout checks that the report of invented figures equals the golden file, which shows
// the layout and the verdicts.
func TestReportLayout(t *testing.T) {
	rounds := func(rates ...float64) (all []outcome) {
		for i, r := range rates {
			all = append(all, outcome{figure: figure{rate: r, p50: 0.5, p99: 1.5}, contenderCPU: 1000 / r, serverCPU: 2,
				otherCores: float64(i) / 4})
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
	set := settings{rounds: 3, clients: 50, requests: 100, idleClients: 10, concurrentConnects: 64, settleTime: time.Second, connects: 1000}
	writeSpeed(&out, set, r, tally)
	writeIdle(&out, set, 8, map[string]idleCost{
		nameProxy:   {clients: 8, rssBefore: 1 << 20, rssAfter: 2 << 20, descriptors: 16},
		nameHAProxy: {clients: 8, rssBefore: 1 << 20, rssAfter: 3 << 19, descriptors: 16, otherCores: 0.2},
	}, tally)
	flat := connectTest{snapshots: []snapshot{{descriptors: 7, rss: 1 << 20}, {connects: 100, descriptors: 9, rss: 5 << 20,
		duration: time.Second}, {connects: 1000, descriptors: 9, rss: 13 << 20, duration: 2 * time.Second}}}
	flat.write(&out, set, tally)
	leaky := connectTest{snapshots: flat.snapshots, errors: map[string]int{"refused": 2}}
	leaky.write(&out, set, tally)
	tally.Write(&out)
	golden.Want(t, "testdata/report.md", out.Bytes())
}

func TestConnectVerdicts(t *testing.T) {
	var out bytes.Buffer
	for name, c := range map[string]struct {
		last   snapshot
		errors map[string]int
		want   figures.Tally
	}{
		"flat": {snapshot{connects: 1000, rss: 20<<20 + maxGrowth, descriptors: 5 + maxMoreDescriptors}, nil,
			tallyOf(figures.VerdictMet, figures.VerdictMet)},
		"memory grows": {snapshot{connects: 1000, rss: 20<<20 + maxGrowth + 1, descriptors: 5}, nil,
			tallyOf(figures.VerdictMet, figures.VerdictMissed)},
		"files stay": {snapshot{connects: 1000, rss: 20 << 20, descriptors: 6 + maxMoreDescriptors}, nil,
			tallyOf(figures.VerdictMet, figures.VerdictMissed)},
		"clients failed": {snapshot{connects: 1000, rss: 20 << 20, descriptors: 5}, map[string]int{"x": 1},
			tallyOf(figures.VerdictErrors, figures.VerdictErrors)},
	} {
		s := connectTest{snapshots: []snapshot{{rss: 1 << 20, descriptors: 5}, {connects: 100, rss: 20 << 20, descriptors: 6}, c.last},
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
