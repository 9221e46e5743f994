package model

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestEachMechanismIsNeeded: without any one of its mechanisms, the protocol violates a property,
// and the explorer finds the violation.
func TestEachMechanismIsNeeded(t *testing.T) {
	redistest.SkipShort(t)
	for _, test := range []struct {
		name string
		s    Scenario
		v    Variant
		long bool
	}{
		{"accept in any incarnation", Scenario{N: 3, Held: 3, Losses: 0, Leases: 1, Brief: true,
			Ops: []Op{shortA, setC, lockC}}, acceptsAnyIncarnation(), false},
		{"accept creates", Scenario{N: 3, Held: 3, Losses: 0, Leases: 1, Brief: true,
			Ops: []Op{shortA, setC, lockC, {Do: Unlock, Token: 'c', Proxy: 2, After: []int{3}, Success: true}}},
			acceptCreates(), true},
		{"undo deletes what was accepted", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, setC,
			{Do: Get, Proxy: 1, After: []int{2}}}}, undoDeletesAccepted(), true},
		{"release deletes what was promised", Scenario{N: 3, Held: 3, Losses: 1, Ops: []Op{lockA, unlockA, setC}},
			releaseDeletesPromised(), false},
		{"undo by value", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, lockAgain, lockC}}, undoByValue(), false},
		{"release by value", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, unlockA, lockAgain, lockC}}, releaseByValue(), false},
		{"release counts absent", Scenario{N: 3, Held: 3, Leases: 1, Ops: []Op{lockA, del, unlockA}},
			releaseCountsAbsent(), false},
		{"nil by several", Scenario{N: 3, Losses: 0, Ops: []Op{lockA, lockB, lockC}}, refusesAlike(), false},
		{"extend shortens", Scenario{N: 3, Held: 3, Losses: 1, Leases: 1,
			Ops: []Op{lockA, {Do: Extend, Token: 'a', Short: true}, lockB}}, extendShortens(), false},
		{"no lineage", Scenario{N: 3, Held: 3, Losses: 1, Retries: 1, Ops: []Op{lockA, setB, setC}}, noLineage(), false},
		{"long values, no lineage", Scenario{N: 3, Held: 3, Ordered: true, Ops: []Op{lockA, setB, get, getAfter3}},
			longWithoutLineage(), false},
		{"rounds take any time", Scenario{N: 3, Losses: 1, Slow: 1, Restarts: 1, Ops: []Op{lockA, lockB}}, unlimited(), true},
		{"no barrier", Scenario{N: 3, Losses: 1, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchesUp(CatchUp{NoBarrier: true}), true},
		{"no quarantine", Scenario{N: 3, Losses: 0, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchesUp(CatchUp{NoQuarantine: true}), false},
		{"no blocking copies", Scenario{N: 3, Losses: 1, Held: 3, Slow: 2, Restarts: 2, Ops: []Op{lockA, unlockA}},
			catchesUp(CatchUp{NoBlocking: true}), false},
		{"any fence is taken", Scenario{N: 3, Losses: 1, Ops: []Op{fencedA, unlockA, fencedB}}, takesAnyFence(), false},
		{"no fences are copied", Scenario{N: 3, Held: 2, Slow: 1, Restarts: 1, Ops: []Op{fencedA, unlockA, fencedB}},
			catchesUp(CatchUp{NoFences: true}), false},
		{"few sources", Scenario{N: 3, Losses: 1, Slow: 1, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchesUp(CatchUp{FewSources: true}), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long && !all() {
				t.Skip("make model explores it")
			}
			t.Parallel()
			test.s.Name, test.s.Variant = test.name, test.v
			began := time.Now()
			r := Explore(test.s, 2e6)
			t.Logf("%d states, %v: %s", r.States, time.Since(began).Round(time.Millisecond), r.Violation)
			if r.Violation == "" {
				t.Errorf("nothing wrong in %d states (complete %v)", r.States, r.Complete)
			}
		})
	}
}
