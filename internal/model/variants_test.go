package model

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// TestNeedForEachMechanism checks that the protocol needs each of its mechanisms. Without any one
// of them, the protocol violates a property, and the explorer finds the violation.
func TestNeedForEachMechanism(t *testing.T) {
	redistest.SkipShort(t)
	for _, test := range []struct {
		name string
		s    Scenario
		v    Variant
		long bool
	}{
		{"accept in any incarnation", Scenario{N: 3, InitialHolders: 3, Losses: 0, LeaseTicks: 1, BriefLeases: true,
			Ops: []Op{shortA, setC, lockC}}, anyIncarnationVariant(), false},
		{"accept creates", Scenario{N: 3, InitialHolders: 3, Losses: 0, LeaseTicks: 1, BriefLeases: true,
			Ops: []Op{shortA, setC, lockC, {Kind: Unlock, Token: 'c', Proxy: 2, After: []int{3}, AfterSuccess: true}}},
			creatingAcceptVariant(), true},
		{"undo deletes what was accepted", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, setC,
			{Kind: Get, Proxy: 1, After: []int{2}}}}, undoAcceptedVariant(), true},
		{"release deletes what was promised", Scenario{N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, unlockA, setC}},
			releasePromisedVariant(), false},
		{"release deletes blocking copies", replacedHeldByTwo, releaseBlockingVariant(), false},
		{"undo by value", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, lockAOtherProxy, lockC}}, undoByValue(), false},
		{"release by value", Scenario{N: 3, Losses: 2, Ops: []Op{lockA, unlockA, lockAOtherProxy, lockC}}, releaseByValue(), false},
		{"release counts absent", Scenario{N: 3, InitialHolders: 3, LeaseTicks: 1, Ops: []Op{lockA, del, unlockA}},
			releaseAbsentVariant(), false},
		{"nil by several", Scenario{N: 3, Losses: 0, Ops: []Op{lockA, lockB, lockC}}, equalRefusals(), false},
		{"nil by another key's refusals", Scenario{N: 3, OtherKeyTaken: 2, Ops: []Op{mlockA, get}}, refusalCountsAsHeld(), false},
		{"some keys are taken", Scenario{N: 3, OtherKeyTaken: 2, Retries: 1, Ops: []Op{mlockA, get}}, partialTakeVariant(), false},
		{"extend shortens", Scenario{N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1,
			Ops: []Op{lockA, {Kind: Extend, Token: 'a', ShortLease: true}, lockB}}, shorteningExtendVariant(), false},
		{"no list of changes", Scenario{N: 3, InitialHolders: 3, Losses: 1, Retries: 1, Ops: []Op{lockA, setB, setC}}, noChangeList(), false},
		{"long values, no list of changes", Scenario{N: 3, InitialHolders: 3, PreferSomeMasters: true, Ops: []Op{lockA, setB, get, getAfter3}},
			longValuesWithoutChangeList(), false},
		{"rounds take any time", Scenario{N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, lockB}}, unlimitedRounds(), true},
		{"no barrier", Scenario{N: 3, Losses: 1, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchUpVariant(CatchUp{NoBarrier: true}), true},
		{"no quarantine", Scenario{N: 3, Losses: 0, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchUpVariant(CatchUp{NoQuarantine: true}), false},
		{"no blocking copies", Scenario{N: 3, Losses: 1, InitialHolders: 3, SlowTicks: 2, Restarts: 2, Ops: []Op{lockA, unlockA}},
			catchUpVariant(CatchUp{NoBlockingCopies: true}), false},
		{"any fence is taken", Scenario{N: 3, Losses: 1, Ops: []Op{fencedA, unlockA, fencedB}}, anyFenceVariant(), false},
		{"no fences are copied", Scenario{N: 3, InitialHolders: 2, SlowTicks: 1, Restarts: 1, Ops: []Op{fencedA, unlockA, fencedB}},
			catchUpVariant(CatchUp{NoFences: true}), false},
		{"few sources", Scenario{N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, lockB}},
			catchUpVariant(CatchUp{FewSources: true}), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long && !exploresAll() {
				t.Skip("make model explores it")
			}
			t.Parallel()
			test.s.Name, test.s.Variant = test.name, test.v
			start := time.Now()
			r := Explore(test.s, 2e6)
			t.Logf("%d states, %v: %s", r.States, time.Since(start).Round(time.Millisecond), r.Violation)
			if r.Violation == "" {
				t.Errorf("no violation in %d states (complete %v)", r.States, r.Complete)
			}
		})
	}
}
