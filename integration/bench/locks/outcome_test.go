package locks

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestOutcomeOfARun(t *testing.T) {
	run := record{
		clients: 2,
		window:  window{from: 1 * ms, to: 101 * ms},
		pairs: []pair{
			{sent: -20 * ms, granted: -15 * ms, released: -10 * ms}, // warm-up: counts nowhere
			// This pair ended within the window, but was requested before it.
			{sent: -5 * ms, granted: 2 * ms, released: 3 * ms},
			{sent: 2 * ms, granted: 3 * ms, released: 6 * ms},
			// This long wait counts, but not as a pair of the window.
			{sent: 90 * ms, granted: 130 * ms, released: 131 * ms},
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
		{rate: 10, lock50: 3 * ms, cpu: cpuPerPair{total: 1}, errors: map[string]int{"x": 1}, others: 0.1,
			turns: turns{grants: 5, overtaken: 1, most: 9, least: 2, greatest: 3}},
		{rate: 30, lock50: 1 * ms, cpu: cpuPerPair{total: 3}, errors: map[string]int{"x": 1, "y": 1}, others: 0.5,
			turns: turns{grants: 5, most: 4, least: 1, greatest: 4}},
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
