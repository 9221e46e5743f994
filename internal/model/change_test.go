package model

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// replaceMaster and the following functions return the explored changes. Proxies 2 and 3 use the
// new set.
func replaceMaster() *Change { return &Change{New: []int{0, 1, 3}, Proxies: []int{1, 2}} }
func addMaster() *Change     { return &Change{New: []int{0, 1, 2, 3}, Proxies: []int{1, 2}} }
func addMasterAllAnswer() *Change {
	return &Change{New: []int{0, 1, 2, 3}, Proxies: []int{1, 2}, AllAnswer: true}
}
func removeMaster() *Change { return &Change{New: []int{0, 1, 2}, Proxies: []int{1, 2}} }

var (
	newUnlockA = Op{Kind: Unlock, Token: 'a', Proxy: 1, After: []int{1}, AfterSuccess: true}
	newExtendA = Op{Kind: Extend, Token: 'a', Proxy: 1, After: []int{1}, AfterSuccess: true}
	newLockC   = Op{Kind: Lock, Token: 'c', Proxy: 2}
)

var quickChanges = []Scenario{
	{Name: "one replaced: LOCK, LOCK", N: 3, Losses: 1, Change: replaceMaster(), Ops: []Op{lockA, lockB}},
	{Name: "one added: LOCK, LOCK", N: 3, Change: addMaster(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK", N: 4, Change: removeMaster(), Ops: []Op{lockA, lockB}},
	{Name: "one replaced: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: replaceMaster(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new", N: 3, InitialHolders: 3, Change: replaceMaster(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "all well: one added: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
		Change: addMasterAllAnswer(), Ops: []Op{lockA, newUnlockA, newLockC}},
}

var longChanges = []Scenario{
	{Name: "one replaced: LOCK, UNLOCK, LOCK", N: 3, Losses: 1, Change: replaceMaster(), Ops: []Op{lockA, unlockA, lockB}},
	{Name: "one replaced: LOCK, LOCK, a lease ends", N: 3, LeaseTicks: 1, Losses: 1, Change: replaceMaster(),
		Ops: []Op{shortA, lockB}},
	{Name: "one added: LOCK, LOCK with a lost answer", N: 3, Losses: 1, Change: addMaster(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK with a lost answer", N: 4, Losses: 1, Change: removeMaster(), Ops: []Op{lockA, lockB}},
	{Name: "one added: held by two, EXTEND by the new, LOCK", N: 3, InitialHolders: 2, Change: addMaster(),
		Ops: []Op{lockA, newExtendA, newLockC}},
	{Name: "one added: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: addMaster(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, DEL by the new, UNLOCK by the old, LOCK", N: 3, InitialHolders: 3, Change: replaceMaster(),
		Ops: []Op{lockA, del, unlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new, a lost answer", N: 3, InitialHolders: 3, Losses: 1, Change: replaceMaster(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "fences: one replaced: held by two, UNLOCK by the new, LOCK", N: 3, InitialHolders: 2, Change: replaceMaster(),
		Ops: []Op{fencedA, newUnlockA, {Kind: Lock, Token: 'c', Proxy: 2, Fence: true}}},
	{Name: "from two to three: LOCK, LOCK", N: 2, Losses: 1, Change: &Change{New: []int{0, 1, 2}, Proxies: []int{1}},
		Ops: []Op{lockA, lockB}},
}

func TestMasterChanges(t *testing.T) {
	for _, s := range quickChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.SampleCount(quickLimit)) })
	}
	if !exploresAll() {
		return
	}
	for _, s := range longChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, longLimit) })
	}
}

// TestEachChangeMechanismIsNeeded: without any one of its mechanisms, a change of the masters
// violates a property, and the explorer finds the violation.
func TestEachChangeMechanismIsNeeded(t *testing.T) {
	redistest.SkipShort(t)
	with := func(c *Change, switchOff func(*Change)) *Change { switchOff(c); return c }
	twoLocks := []Op{lockA, lockB}
	for _, test := range []struct {
		name string
		s    Scenario
		long bool
	}{
		{"no seal", Scenario{N: 3, Change: with(replaceMaster(), func(c *Change) { c.NoSeal = true }), Ops: twoLocks}, false},
		{"the new masters vote at once", Scenario{N: 3, Change: with(replaceMaster(), func(c *Change) { c.NoJoin = true }),
			Ops: twoLocks}, false},
		{"too few origins", Scenario{N: 3, Change: with(replaceMaster(), func(c *Change) { c.FewSources = true }), Ops: twoLocks}, false},
		{"each with what it holds itself", Scenario{N: 3, Change: with(replaceMaster(),
			func(c *Change) { c.OwnDataOnly = true }), Ops: twoLocks}, false},
		{"no blocking copies", Scenario{N: 3, Losses: 1, Change: with(replaceMaster(),
			func(c *Change) { c.NoBlocking = true }), Ops: []Op{lockA, unlockA, lockB}}, true},
		{"by the rules of the new set", Scenario{N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
			Change: with(addMasterAllAnswer(), func(c *Change) { c.DecideByNewSet = true }), Ops: []Op{lockA, newUnlockA, newLockC}}, false},
		{"an ordinary catch-up too early", Scenario{N: 3, InitialHolders: 2, Retries: 2, RequireQuorum: true,
			Change: with(addMasterAllAnswer(), func(c *Change) { c.EarlyCatchUp = true }), Ops: []Op{lockA, newUnlockA, newLockC}}, false},
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
