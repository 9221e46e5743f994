package model

import (
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// replaced, added and calmly are the explored changes. Proxies 2 and 3 use the new set.
func replaced() *Change { return &Change{New: []int{0, 1, 3}, Proxies: []int{1, 2}} }
func added() *Change    { return &Change{New: []int{0, 1, 2, 3}, Proxies: []int{1, 2}} }
func calmly() *Change   { return &Change{New: []int{0, 1, 2, 3}, Proxies: []int{1, 2}, AllAnswer: true} }
func removed() *Change  { return &Change{New: []int{0, 1, 2}, Proxies: []int{1, 2}} }

var (
	newUnlockA = Op{Do: Unlock, Token: 'a', Proxy: 1, After: []int{1}, Success: true}
	newExtendA = Op{Do: Extend, Token: 'a', Proxy: 1, After: []int{1}, Success: true}
	newLockC   = Op{Do: Lock, Token: 'c', Proxy: 2}
)

var quickChanges = []Scenario{
	{Name: "one replaced: LOCK, LOCK", N: 3, Losses: 1, Change: replaced(), Ops: []Op{lockA, lockB}},
	{Name: "one added: LOCK, LOCK", N: 3, Change: added(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK", N: 4, Change: removed(), Ops: []Op{lockA, lockB}},
	{Name: "one replaced: held by two, UNLOCK by the new, LOCK", N: 3, Held: 2, Change: replaced(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new", N: 3, Held: 3, Change: replaced(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "all well: one added: held by two, UNLOCK by the new, LOCK", N: 3, Held: 2, Retries: 2, Calm: true,
		Change: calmly(), Ops: []Op{lockA, newUnlockA, newLockC}},
}

var longChanges = []Scenario{
	{Name: "one replaced: LOCK, UNLOCK, LOCK", N: 3, Losses: 1, Change: replaced(), Ops: []Op{lockA, unlockA, lockB}},
	{Name: "one replaced: LOCK, LOCK, a lease ends", N: 3, Leases: 1, Losses: 1, Change: replaced(),
		Ops: []Op{shortA, lockB}},
	{Name: "one added: LOCK, LOCK with a lost answer", N: 3, Losses: 1, Change: added(), Ops: []Op{lockA, lockB}},
	{Name: "one removed: LOCK, LOCK with a lost answer", N: 4, Losses: 1, Change: removed(), Ops: []Op{lockA, lockB}},
	{Name: "one added: held by two, EXTEND by the new, LOCK", N: 3, Held: 2, Change: added(),
		Ops: []Op{lockA, newExtendA, newLockC}},
	{Name: "one added: held by two, UNLOCK by the new, LOCK", N: 3, Held: 2, Change: added(),
		Ops: []Op{lockA, newUnlockA, newLockC}},
	{Name: "one replaced: held, DEL by the new, UNLOCK by the old, LOCK", N: 3, Held: 3, Change: replaced(),
		Ops: []Op{lockA, del, unlockA, newLockC}},
	{Name: "one replaced: held, GETSET, GETSET by the new, a lost answer", N: 3, Held: 3, Losses: 1, Change: replaced(),
		Ops: []Op{lockA, setB, setC}},
	{Name: "fences: one replaced: held by two, UNLOCK by the new, LOCK", N: 3, Held: 2, Change: replaced(),
		Ops: []Op{fencedA, newUnlockA, {Do: Lock, Token: 'c', Proxy: 2, Fence: true}}},
	{Name: "from two to three: LOCK, LOCK", N: 2, Losses: 1, Change: &Change{New: []int{0, 1, 2}, Proxies: []int{1}},
		Ops: []Op{lockA, lockB}},
}

func TestChangesOfTheMasters(t *testing.T) {
	for _, s := range quickChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.Sampled(quickLimit)) })
	}
	if !all() {
		return
	}
	for _, s := range longChanges {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, longLimit) })
	}
}

// TestEachMechanismOfAChangeIsNeeded: without any one of its mechanisms, a change of the masters
// violates a property, and the explorer finds the violation.
func TestEachMechanismOfAChangeIsNeeded(t *testing.T) {
	redistest.SkipShort(t)
	with := func(c *Change, leave func(*Change)) *Change { leave(c); return c }
	two := []Op{lockA, lockB}
	for _, test := range []struct {
		name string
		s    Scenario
		long bool
	}{
		{"no seal", Scenario{N: 3, Change: with(replaced(), func(c *Change) { c.NoSeal = true }), Ops: two}, false},
		{"the new masters vote at once", Scenario{N: 3, Change: with(replaced(), func(c *Change) { c.NoJoin = true }),
			Ops: two}, false},
		{"too few origins", Scenario{N: 3, Change: with(replaced(), func(c *Change) { c.FewOrigins = true }), Ops: two}, false},
		{"each with what it holds itself", Scenario{N: 3, Change: with(replaced(),
			func(c *Change) { c.OwnOnly = true }), Ops: two}, false},
		{"no blocking copies", Scenario{N: 3, Losses: 1, Change: with(replaced(),
			func(c *Change) { c.NoBlocking = true }), Ops: []Op{lockA, unlockA, lockB}}, true},
		{"by the rules of the new set", Scenario{N: 3, Held: 2, Retries: 2, Calm: true,
			Change: with(calmly(), func(c *Change) { c.NewRules = true }), Ops: []Op{lockA, newUnlockA, newLockC}}, false},
		{"an ordinary catch-up too early", Scenario{N: 3, Held: 2, Retries: 2, Calm: true,
			Change: with(calmly(), func(c *Change) { c.EarlyRules = true }), Ops: []Op{lockA, newUnlockA, newLockC}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long && !all() {
				t.Skip("make model explores it")
			}
			t.Parallel()
			test.s.Name = test.name
			began := time.Now()
			r := Explore(test.s, 1e6)
			t.Logf("%d states, %v: %s", r.States, time.Since(began).Round(time.Millisecond), r.Violation)
			if r.Violation == "" {
				t.Errorf("nothing wrong in %d states (complete %v)", r.States, r.Complete)
			}
		})
	}
}
