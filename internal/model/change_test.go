package model

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// masterReplacement and the following functions return the explored changes. The proxies with the
// indexes 1 and 2 use the new set.
func masterReplacement() *Change { return &Change{NewMasters: []int{0, 1, 3}, Proxies: []int{1, 2}} }
func masterAddition() *Change    { return &Change{NewMasters: []int{0, 1, 2, 3}, Proxies: []int{1, 2}} }
func masterAdditionAllSealed() *Change {
	return &Change{NewMasters: []int{0, 1, 2, 3}, Proxies: []int{1, 2}, RequireAllSealed: true}
}
func masterRemoval() *Change { return &Change{NewMasters: []int{0, 1, 2}, Proxies: []int{1, 2}} }
func sameMasters() *Change   { return masterRemoval() }

// withDataLosses lets masters miss the change, and lets masters lose their data, at most losses
// times in all, after the change was decided.
func withDataLosses(c *Change, losses int) *Change {
	c.AllowReturn, c.DataLosses = true, losses
	return c
}

var (
	newUnlockA = Op{Kind: Unlock, Token: 'a', Proxy: 1, After: []int{1}, AfterSuccess: true}
	newExtendA = Op{Kind: Extend, Token: 'a', Proxy: 1, After: []int{1}, AfterSuccess: true}
	newLockA   = Op{Kind: Lock, Token: 'a', Proxy: 1}
	newLockC   = Op{Kind: Lock, Token: 'c', Proxy: 2}
)

var quickChanges = []Scenario{
	{Name: "one replaced: LOCK, LOCK", N: 3, Losses: 1, Change: masterReplacement(), Ops: []Op{lockA, lockB}},
	{Name: "one added: LOCK, LOCK", N: 3, Change: masterAddition(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK", N: 4, Change: masterRemoval(), Ops: []Op{lockA, lockB}},
	{Name: "one replaced: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: masterReplacement(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new", N: 3, InitialHolders: 3, Change: masterReplacement(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "all well: one added: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
		Change: masterAdditionAllSealed(), Ops: []Op{lockA, newUnlockA, newLockC}},
}

var longChanges = []Scenario{
	{Name: "one replaced: LOCK, UNLOCK, LOCK", N: 3, Losses: 1, Change: masterReplacement(), Ops: []Op{lockA, unlockA, lockB}},
	{Name: "one replaced: LOCK, LOCK, a lease ends", N: 3, LeaseTicks: 1, Losses: 1, Change: masterReplacement(),
		Ops: []Op{shortA, lockB}},
	{Name: "one added: LOCK, LOCK with a lost answer", N: 3, Losses: 1, Change: masterAddition(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK with a lost answer", N: 4, Losses: 1, Change: masterRemoval(), Ops: []Op{lockA, lockB}},
	{Name: "one added: held by two, EXTEND by the new, LOCK", N: 3, InitialHolders: 2, Change: masterAddition(),
		Ops: []Op{lockA, newExtendA, newLockC}},
	{Name: "one added: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: masterAddition(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, DEL by the new, UNLOCK by the old, LOCK", N: 3, InitialHolders: 3, Change: masterReplacement(),
		Ops: []Op{lockA, del, unlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new, a lost answer", N: 3, InitialHolders: 3, Losses: 1, Change: masterReplacement(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "fences: one replaced: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: masterReplacement(),
		Ops: []Op{fencedA, newUnlockA, {Kind: Lock, Token: 'c', Proxy: 2, Fence: true}}},
	{Name: "from two to three: LOCK, LOCK", N: 2, Losses: 1, Change: &Change{NewMasters: []int{0, 1, 2}, Proxies: []int{1}},
		Ops: []Op{lockA, lockB}},
}

// dataLossChanges holds scenarios in which masters lose their data after the change was decided,
// or return without having seen the change.
var dataLossChanges = []Scenario{
	{Name: "one replaced, two forget: LOCK, LOCK by the new", N: 3, SlowTicks: 1, Change: withDataLosses(masterReplacement(), 2),
		Ops: []Op{newLockA, newLockC}},
	{Name: "one replaced, two forget: held, LOCK by the new", N: 3, InitialHolders: 3, SlowTicks: 1, Change: withDataLosses(masterReplacement(), 2),
		Ops: []Op{lockA, newLockC}},
	{Name: "one replaced, one forgets: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Change: withDataLosses(masterReplacement(), 1),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one added, one forgets: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Change: withDataLosses(masterAddition(), 1),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one added, two forget: held, LOCK by the new", N: 3, InitialHolders: 3, SlowTicks: 1, Change: withDataLosses(masterAddition(), 2),
		Ops: []Op{lockA, newLockC}},
	{Name: "one removed, two forget: LOCK, LOCK by the new", N: 4, SlowTicks: 1, Change: withDataLosses(masterRemoval(), 2),
		Ops: []Op{newLockA, newLockC}},
	{Name: "the same masters, one away: LOCK, UNLOCK by the new, LOCK", N: 3, SlowTicks: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "the same masters, one away: held by two, EXTEND by the new, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, newExtendA, newLockC}},
}

func TestChangesWithDataLoss(t *testing.T) {
	limit := redistest.StateLimit(quickLimit, longLimit)
	for _, s := range dataLossChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, limit) })
	}
}

// grantedThenLostScript leads to this state: A and D of the new set have granted a lock and
// lost their data. B has missed the change, and C is removed.
const grantedThenLostScript = `
seals A
seals C
begins to join & A
fills A
joins & A
begins to join & D
fills D
joins & D
LOCK a by proxy 2 starts
deliver & proxy 2's take & at A
deliver & proxy 2's take & at D |
loses its data & A
loses its data & D
a round's time passes
`

// TestMajorityLosesData checks that a majority of the new set that has lost its data does not join
// by the rules of the old set again. No master of the old set knows the locks that this majority
// granted.
func TestMajorityLosesData(t *testing.T) {
	ops := []Op{newLockA, newLockC, {Kind: Get, Proxy: 3, After: []int{1}}}
	change := withDataLosses(masterReplacement(), 2)
	change.Proxies = []int{1, 2, 3}
	r := follow(t, Scenario{N: 3, SlowTicks: 1, Change: change, Ops: ops}, grantedThenLostScript, quickLimit)
	if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
	}
	change.RulesByVotes = true
	r = follow(t, Scenario{N: 3, SlowTicks: 1, Change: change, Ops: ops}, grantedThenLostScript, quickLimit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("no violation by the rules of the old set")
	}
}

// missedChangeScript leads to this state: A holds the lock of the first operation, and has missed
// the change; B holds it, too, and C has a blocking copy.
const missedChangeScript = `
seals B
seals C
begins to join & B
fills B
joins & B
begins to join & C
fills C
joins & C
`

// missedChangeScenarios holds scenarios that begin with missedChangeScript.
var missedChangeScenarios = []Scenario{
	{Name: "UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Losses: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "UNLOCK by the old, LOCK by the new", N: 3, InitialHolders: 2, SlowTicks: 1, Losses: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, unlockA, newLockC}},
	{Name: "EXTEND and LOCK by the new", N: 3, InitialHolders: 2, SlowTicks: 1, Losses: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, newExtendA, newLockC}},
	{Name: "GETSET by the new, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Change: withDataLosses(sameMasters(), 1),
		Ops: []Op{lockA, setC, newLockC}},
	{Name: "all return: UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
		Change: withReturningMasters(), Ops: []Op{lockA, newUnlockA, newLockC}},
}

// withReturningMasters lets the masters that missed the change return before the clients begin.
func withReturningMasters() *Change {
	c := withDataLosses(sameMasters(), 0)
	c.RequireAllJoined = true
	return c
}

func TestMasterMissedChange(t *testing.T) {
	limit := redistest.StateLimit(quickLimit, longLimit)
	for _, s := range missedChangeScenarios {
		r := follow(t, s, missedChangeScript, limit)
		if t.Logf("%s: %d states follow, complete: %v", s.Name, r.States, r.Complete); r.Violation != "" {
			t.Errorf("%s: %s\n%s", s.Name, r.Violation, strings.Join(r.Trace, "\n"))
		}
	}
	s := missedChangeScenarios[len(missedChangeScenarios)-1]
	change := *s.Change
	change.OverwriteOwnCells, s.Change = true, &change
	r := follow(t, s, missedChangeScript, limit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("no violation with blocking copies in place of the master's own cells")
	}
}

func TestMasterChanges(t *testing.T) {
	for _, s := range quickChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.SampleCount(quickLimit)) })
	}
	if !exploresAll() {
		return
	}
	for _, s := range longChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.StateLimit(quickLimit, longLimit)) })
	}
}

// TestNeedForEachChangeMechanism checks that a change of the masters needs each of its mechanisms.
// Without any one of them, the change violates a property, and the explorer finds the violation.
func TestNeedForEachChangeMechanism(t *testing.T) {
	redistest.SkipShort(t)
	with := func(c *Change, switchOff func(*Change)) *Change { switchOff(c); return c }
	twoLocks := []Op{lockA, lockB}
	for _, test := range []struct {
		name string
		s    Scenario
		long bool
	}{
		{"no seal", Scenario{N: 3, Change: with(masterReplacement(), func(c *Change) { c.NoSeal = true }), Ops: twoLocks}, false},
		{"the new masters vote at once", Scenario{N: 3, Change: with(masterReplacement(), func(c *Change) { c.NoJoin = true }),
			Ops: twoLocks}, false},
		{"too few origins", Scenario{N: 3, Change: with(masterReplacement(), func(c *Change) { c.FewSources = true }), Ops: twoLocks}, false},
		{"each with what it holds itself", Scenario{N: 3, Change: with(masterReplacement(),
			func(c *Change) { c.OwnDataOnly = true }), Ops: twoLocks}, false},
		{"no blocking copies", Scenario{N: 3, Losses: 1, Change: with(masterReplacement(),
			func(c *Change) { c.NoBlockingCopies = true }), Ops: []Op{lockA, unlockA, lockB}}, true},
		{"by the rules of the new set", Scenario{N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
			Change: with(masterAdditionAllSealed(), func(c *Change) { c.DecideByNewSet = true }), Ops: []Op{lockA, newUnlockA, newLockC}}, false},
		{"an ordinary catch-up too early", Scenario{N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
			Change: with(masterAdditionAllSealed(), func(c *Change) { c.EarlyCatchUp, c.FullCopyByNewSet = true, true }),
			Ops:    []Op{lockA, newUnlockA, newLockC}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long && !exploresAll() {
				t.Skip("make model explores it")
			}
			t.Parallel()
			test.s.Name = test.name
			start := time.Now()
			r := Explore(test.s, 1e6)
			t.Logf("%d states, %v: %s", r.States, time.Since(start).Round(time.Millisecond), r.Violation)
			if r.Violation == "" {
				t.Errorf("no violation in %d states (complete %v)", r.States, r.Complete)
			}
		})
	}
}
