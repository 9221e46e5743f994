package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		values []time.Duration
		p      int
		want   time.Duration
	}{
		{nil, 50, 0},
		{[]time.Duration{7}, 50, 7},
		{[]time.Duration{7}, 99, 7},
		{[]time.Duration{9, 1}, 50, 1},
		{[]time.Duration{3, 1, 2}, 50, 2},
		{[]time.Duration{3, 1, 2}, 99, 3},
		{hundred, 50, 50},
		{hundred, 99, 99},
	} {
		if got := percentile(slices.Clone(c.values), c.p); got != c.want {
			t.Errorf("p%d of %v: %d; want %d", c.p, c.values, got, c.want)
		}
	}
}

// TestPercentileByItsDefinition counts, under random input, the values that do not exceed the answer.
func TestPercentileByItsDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]time.Duration, 1+random.IntN(300))
		for i := range values {
			values[i] = time.Duration(random.IntN(50))
		}
		p := 1 + random.IntN(99)
		got := percentile(values, p)
		upTo, below := 0, 0
		for _, v := range values {
			if v <= got {
				upTo++
			}
			if v < got {
				below++
			}
		}
		if upTo*100 < p*len(values) || below*100 >= p*len(values) {
			t.Fatalf("p%d of %d values is %d: %d are not above it, %d below", p, len(values), got, upTo, below)
		}
	}
}

func TestOutcomeOfARun(t *testing.T) {
	run := record{
		clients: 2,
		window:  window{from: 1 * ms, to: 101 * ms},
		pairs: []pair{
			{sent: -20 * ms, granted: -15 * ms, released: -10 * ms}, // warm-up: counts nowhere
			{sent: -5 * ms, granted: 2 * ms, released: 3 * ms},      // ended within the window, but was not asked for in it
			{sent: 2 * ms, granted: 3 * ms, released: 6 * ms},
			{sent: 90 * ms, granted: 130 * ms, released: 131 * ms}, // a long wait counts, but not as a pair of the window
		},
		errors: map[string]int{"x": 2, "y": 1},
		cpu:    cpuTimes{load: 10 * ms, proxy: 20 * ms, masters: 30 * ms, machine: 90 * ms},
	}
	got := run.outcome()
	if got.rate != 20 || got.errorCount() != 3 {
		t.Errorf("%v pairs/s, %d errors; want 20, 3", got.rate, got.errorCount())
	}
	if got.lock50 != 1*ms || got.lock99 != 40*ms || got.pair50 != 4*ms || got.pair99 != 41*ms {
		t.Errorf("LOCK %v %v, pair %v %v; want 1ms 40ms, 4ms 41ms", got.lock50, got.lock99, got.pair50, got.pair99)
	}
	if want := (cpuPerPair{load: 5000, proxy: 10000, masters: 15000, total: 30000}); got.cpu != want {
		t.Errorf("CPU %+v; want %+v", got.cpu, want)
	}
	if got.others < 0.299 || got.others > 0.301 {
		t.Errorf("others took %v cores; want 0.3", got.others)
	}
}

func TestMediansOfRounds(t *testing.T) {
	got := medians([]outcome{
		{rate: 10, lock50: 3 * ms, cpu: cpuPerPair{total: 1}, errors: map[string]int{"x": 1}, others: 0.1, turns: turns{grants: 5, overtaken: 1, most: 9, least: 2, greatest: 3}},
		{rate: 30, lock50: 1 * ms, cpu: cpuPerPair{total: 3}, errors: map[string]int{"x": 1, "y": 1}, others: 0.5, turns: turns{grants: 5, most: 4, least: 1, greatest: 4}},
		{rate: 20, lock50: 2 * ms, cpu: cpuPerPair{total: 2}, turns: turns{grants: 5, most: 4, least: 2, greatest: 3}},
	})
	if got.rate != 20 || got.lock50 != 2*ms || got.cpu.total != 2 || got.others != 0.5 {
		t.Errorf("%+v; want the medians and the worst of others", got)
	}
	if got.errors["x"] != 2 || got.errors["y"] != 1 || got.errorCount() != 3 {
		t.Errorf("errors %v; want x twice and y once", got.errors)
	}
	if want := (turns{grants: 15, overtaken: 1, most: 9, least: 1, greatest: 4}); got.turns != want {
		t.Errorf("turns %+v; want %+v", got.turns, want)
	}
}
