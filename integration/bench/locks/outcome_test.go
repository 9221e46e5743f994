package locks

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestOutcome(t *testing.T) {
	run := record{
		clients: 2,
		window:  window{from: 1 * ms, to: 101 * ms},
		pairs: []pair{
			{sendTime: -20 * ms, grantTime: -15 * ms, releaseTime: -10 * ms}, // warm-up: not counted
			// Pair of the window: it ended within the window. Its request before the window counts
			// in no latency.
			{sendTime: -5 * ms, grantTime: 2 * ms, releaseTime: 3 * ms},
			{sendTime: 2 * ms, grantTime: 3 * ms, releaseTime: 6 * ms},
			// This long wait counts in the latencies. Its pair ended after the window, and does not
			// count.
			{sendTime: 90 * ms, grantTime: 130 * ms, releaseTime: 131 * ms},
		},
		errors: map[string]int{"x": 2, "y": 1},
		cpu:    cpuTimes{load: 10 * ms, proxy: 20 * ms, masters: 30 * ms, machine: 90 * ms},
	}
	got := run.outcome()
	if got.rate != 20 || got.errorCount() != 3 {
		t.Errorf("%v pairs/s, %d errors; want 20, 3", got.rate, got.errorCount())
	}
	if got.lockP50 != 1*ms || got.lockP99 != 40*ms || got.pairP50 != 4*ms || got.pairP99 != 41*ms {
		t.Errorf("LOCK %v %v, pair %v %v; want 1ms 40ms, 4ms 41ms", got.lockP50, got.lockP99, got.pairP50, got.pairP99)
	}
	if want := (cpuPerPair{load: 5000, proxy: 10000, masters: 15000, total: 30000}); got.cpu != want {
		t.Errorf("CPU %+v; want %+v", got.cpu, want)
	}
	if got.otherCores < 0.299 || got.otherCores > 0.301 {
		t.Errorf("others took %v cores; want 0.3", got.otherCores)
	}
}

func TestMediansOfRounds(t *testing.T) {
	got := medians([]outcome{
		{rate: 10, lockP50: 3 * ms, cpu: cpuPerPair{total: 1}, errors: map[string]int{"x": 1}, otherCores: 0.1,
			order: serviceOrder{grants: 5, overtakenRequests: 1, maxTurnsWaited: 9, fewestGrants: 2, mostGrants: 3}},
		{rate: 30, lockP50: 1 * ms, cpu: cpuPerPair{total: 3}, errors: map[string]int{"x": 1, "y": 1}, otherCores: 0.5,
			order: serviceOrder{grants: 5, maxTurnsWaited: 4, fewestGrants: 1, mostGrants: 4}},
		{rate: 20, lockP50: 2 * ms, cpu: cpuPerPair{total: 2}, order: serviceOrder{grants: 5, maxTurnsWaited: 4, fewestGrants: 2, mostGrants: 3}},
	})
	if got.rate != 20 || got.lockP50 != 2*ms || got.cpu.total != 2 || got.otherCores != 0.5 {
		t.Errorf("%+v; want the medians and the worst of others", got)
	}
	if got.errors["x"] != 2 || got.errors["y"] != 1 || got.errorCount() != 3 {
		t.Errorf("errors %v; want x twice and y once", got.errors)
	}
	if want := (serviceOrder{grants: 15, overtakenRequests: 1, maxTurnsWaited: 9, fewestGrants: 1, mostGrants: 4}); got.order != want {
		t.Errorf("turns %+v; want %+v", got.order, want)
	}
}
