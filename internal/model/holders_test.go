package model

import (
	"testing"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/keygroup"
	"redlock-proxy/quorum/register"
)

// The operations on a lock with several holders. joinA comes first if InitialHolders is set.
var (
	joinA         = Op{Kind: Join, Token: 'a', Slots: keygroup.Unlimited}
	joinB         = Op{Kind: Join, Token: 'b', Slots: keygroup.Unlimited, Proxy: 1}
	leaveA        = Op{Kind: Leave, Token: 'a', Slots: keygroup.Unlimited, After: []int{1}, AfterSuccess: true}
	leaveB        = Op{Kind: Leave, Token: 'b', Slots: keygroup.Unlimited, Proxy: 1, After: []int{2}, AfterSuccess: true}
	shortJoinA    = Op{Kind: Join, Token: 'a', Slots: keygroup.Unlimited, ShortLease: true}
	extendHolderA = Op{Kind: ExtendHolder, Token: 'a', Slots: keygroup.Unlimited, ShortLease: true, After: []int{1}, AfterSuccess: true}
	oneOfTwoA     = Op{Kind: Join, Token: 'a', Slots: 2}
	oneOfTwoB     = Op{Kind: Join, Token: 'b', Slots: 2, Proxy: 1}
	oneOfTwoC     = Op{Kind: Join, Token: 'c', Slots: 2, Proxy: 2}
)

// holderScenarios lists the scenarios of locks with several holders that the ordinary tests
// explore.
var holderScenarios = []Scenario{
	{Name: "JOIN, LOCK", N: 3, Losses: -1, Ops: []Op{joinA, lockC}},
	{Name: "JOIN, LEAVE, LOCK", N: 3, Losses: 1, Ops: []Op{joinA, leaveA, lockC}},
	{Name: "held, JOIN", N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{joinA, joinB}},
	{Name: "held, JOIN, LEAVE", N: 3, InitialHolders: 3, Ops: []Op{joinA, joinB, leaveA}},
	{Name: "held by two, JOIN, LEAVE", N: 3, InitialHolders: 2, Ops: []Op{joinA, joinB, leaveA}},
	{Name: "held, JOIN, JOIN for two slots", N: 3, InitialHolders: 3, Ops: []Op{oneOfTwoA, oneOfTwoB, oneOfTwoC}},
	{Name: "a lease ends, held, JOIN, LOCK", N: 3, InitialHolders: 3, LeaseTicks: 1, Ops: []Op{shortJoinA, joinB, lockC}},
	{Name: "a lease ends within a round, held, EXTEND HOLDER, JOIN", N: 3, InitialHolders: 3, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{shortJoinA, extendHolderA, joinB}},
	{Name: "all well: held, JOIN, JOIN", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 3, Ops: []Op{oneOfTwoA, oneOfTwoB, oneOfTwoC}},
}

func TestHolders(t *testing.T) {
	for _, s := range holderScenarios {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.SampleCount(quickLimit)) })
	}
}

// TestNeedForEachHolderMechanism checks that the explorer finds a violation in each variant that
// lacks one mechanism of locks with several holders.
func TestNeedForEachHolderMechanism(t *testing.T) {
	redistest.SkipShort(t)
	lateLeaveA := leaveA
	lateLeaveA.After = []int{2}
	for _, test := range []struct {
		name string
		s    Scenario
		v    Variant
	}{
		{"one slot too many", Scenario{N: 3, InitialHolders: 3, Ops: []Op{oneOfTwoA, oneOfTwoB, oneOfTwoC}}, Variant{ExtraSlots: 1}},
		{"a holder is dropped before its end", Scenario{N: 3, InitialHolders: 3, Ops: []Op{shortJoinA, joinB, lateLeaveA}},
			Variant{OpenHolders: dropEarly}},
		{"a release deletes what was promised", Scenario{N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{joinA, joinB, leaveA, leaveB}},
			releasePromisedVariant()},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.s.Name, test.s.Variant = test.name, test.v
			r := Explore(test.s, 2e6)
			t.Logf("%d states: %s", r.States, r.Violation)
			if r.Violation == "" {
				t.Errorf("no violation in %d states (complete %v)", r.States, r.Complete)
			}
		})
	}
}

// dropEarly opens the holders of a lock, but drops all of them if less than 20 s are left.
func dropEarly(l register.Snapshot) (*keygroup.Holders, error) {
	if l.Present && l.LongestTimeLeft > 0 && l.LongestTimeLeft < 20e9 {
		return keygroup.OpenHolders(register.Snapshot{})
	}
	return keygroup.OpenHolders(l)
}
