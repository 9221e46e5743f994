package model

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// exploresAll reports whether to explore all scenarios (make model), which takes an hour or, with
// the limit of make test-all, some minutes.
func exploresAll() bool { return os.Getenv(redistest.ModelEnv) != "" }

// explore explores a scenario. If it violates a property, the test fails with the trace.
func explore(t *testing.T, s Scenario, limit int) {
	t.Helper()
	if limit < wholeLimit { // two larger scenarios at a time take too much memory
		t.Parallel()
	}
	start := time.Now()
	r := Explore(s, limit)
	t.Logf("%d states, complete: %v, %v", r.States, r.Complete, time.Since(start).Round(10*time.Millisecond))
	if r.Violation != "" || limit == wholeLimit && !r.Complete {
		t.Errorf("%s: %s\n%s", s.Name, r.Violation, strings.Join(r.Trace, "\n"))
	}
}

// The operations of the scenarios. lockA or shortA comes first if InitialHolders is set.
var (
	lockA             = Op{Kind: Lock, Token: 'a'}
	shortA            = Op{Kind: Lock, Token: 'a', ShortLease: true}
	unlockA           = Op{Kind: Unlock, Token: 'a', After: []int{1}, AfterSuccess: true}
	unlockAOtherProxy = Op{Kind: Unlock, Token: 'a', Proxy: 1, After: []int{1}}
	extendA           = Op{Kind: Extend, Token: 'a', After: []int{1}}
	lockB             = Op{Kind: Lock, Token: 'b', Proxy: 1}
	lockBSameProxy    = Op{Kind: Lock, Token: 'b'} // its take may come with the release, or later
	lockAOtherProxy   = Op{Kind: Lock, Token: 'a', Proxy: 1}
	lockC             = Op{Kind: Lock, Token: 'c', Proxy: 2}
	mlockA            = Op{Kind: Lock, Token: 'a', TakesOtherKey: true}
	mlockB            = Op{Kind: Lock, Token: 'b', Proxy: 1, TakesOtherKey: true}
	mlockFenced       = Op{Kind: Lock, Token: 'b', Proxy: 1, TakesOtherKey: true, Fence: true}
	fencedA           = Op{Kind: Lock, Token: 'a', Fence: true}
	fencedB           = Op{Kind: Lock, Token: 'b', Proxy: 1, Fence: true}
	setB              = Op{Kind: GetSet, Token: 'b'}
	setC              = Op{Kind: GetSet, Token: 'c', Proxy: 1}
	setAfterB         = Op{Kind: GetSet, Token: 'd', After: []int{2}}
	setXX             = Op{Kind: SetXX, Token: 'c', Proxy: 1}
	del               = Op{Kind: Del, Proxy: 1}
	get               = Op{Kind: Get, Proxy: 1}
	get0              = Op{Kind: Get}
	getAfter2         = Op{Kind: Get, Proxy: 1, After: []int{2}}
	getAfter3         = Op{Kind: Get, Proxy: 1, After: []int{3}}
)

// quickScenarios holds the scenarios that the ordinary tests explore.
var quickScenarios = []Scenario{
	{Name: "LOCK, LOCK", N: 3, Losses: -1, Ops: []Op{lockA, lockB}},
	{Name: "LOCK, LOCK tried again", N: 3, Losses: 2, Retries: 1, Ops: []Op{lockA, lockB}},
	{Name: "LOCK, UNLOCK", N: 3, Losses: -1, Ops: []Op{lockA, unlockA}},
	{Name: "LOCK, UNLOCK, LOCK", N: 3, Losses: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "a lease ends, LOCK, LOCK", N: 3, Losses: 1, LeaseTicks: 1, Ops: []Op{shortA, lockB}},
	{Name: "a lease ends within a round, UNLOCK, LOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{shortA, unlockA, lockB}},
	{Name: "held, GETSET, GETSET", N: 3, InitialHolders: 3, Ops: []Op{lockA, setB, setC}},
	{Name: "held, EXTEND, GETSET", N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, extendA, setC}},
	{Name: "held, UNLOCK, GETSET", N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, unlockA, setC}},
	{Name: "held, UNLOCK, DEL", N: 3, InitialHolders: 3, Ops: []Op{lockA, unlockA, del}},
	{Name: "GETSET, GET, GET on nothing", N: 3, Losses: 2, Ops: []Op{{Kind: GetSet, Token: 'a'}, get, getAfter2}},
	{Name: "long values: held, GETSET, GET", N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, setB, get}, PreferSomeMasters: true,
		Variant: longValues()},
	{Name: "restart, held, UNLOCK", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, unlockA}},
	{Name: "restart, LOCK, UNLOCK", N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, unlockA}},
	{Name: "two restarts, held by two, LOCK", N: 3, InitialHolders: 2, Losses: 1, SlowTicks: 2, Restarts: 2, Ops: []Op{lockA, lockB}},
	{Name: "5 masters, LOCK, LOCK", N: 5, Losses: 1, Ops: []Op{lockA, lockB}},
	{Name: "fences: LOCK, UNLOCK, LOCK tried again", N: 3, Losses: 1, Retries: 2, Ops: []Op{fencedA, unlockA, fencedB}},
	{Name: "5 masters, held by 3, UNLOCK, LOCK", N: 5, InitialHolders: 3, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "MLOCK, LOCK, the other key taken", N: 3, Losses: 1, OtherKeyTaken: 2, Retries: 1, Ops: []Op{mlockA, lockB}},
	{Name: "MLOCK, UNLOCK, LOCK, the other key taken", N: 3, Losses: 1, OtherKeyTaken: 1, Ops: []Op{mlockA, unlockA, lockB}},
	{Name: "fences: LOCK, UNLOCK, MLOCK, the other key taken", N: 3, OtherKeyTaken: 1, Retries: 2, Ops: []Op{fencedA, unlockA, mlockFenced}},
	{Name: "all well: LOCK, UNLOCK, LOCK", N: 3, RequireQuorum: true, Retries: 3, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "all well: held, GETSET, GETSET", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 3, Ops: []Op{lockA, setB, setC}},
	{Name: "all well: held, EXTEND, GETSET", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 3, Ops: []Op{lockA, extendA, setC}},
}

// completeScenarios holds the scenarios that make model explores completely; REGISTER.md describes
// them.
var completeScenarios = []Scenario{
	{Name: "LOCK, LOCK, LOCK", N: 3, Retries: 1, Ops: []Op{lockA, lockB, lockC}},
	{Name: "MLOCK, LOCK, the other key taken, tried again", N: 3, OtherKeyTaken: 2, Retries: 1, Ops: []Op{mlockA, lockB}},
	{Name: "MLOCK, MLOCK, the other key taken", N: 3, Losses: 1, OtherKeyTaken: 1, Ops: []Op{mlockA, mlockB}},
	{Name: "LOCK, DEL, LOCK", N: 3, Losses: 1, Ops: []Op{lockA, del, lockC}},
	{Name: "LOCK, UNLOCK, LOCK, any losses", N: 3, Losses: -1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "a removal ends, held, DEL, UNLOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, Ops: []Op{lockA, del, unlockA}},
	{Name: "held, GETSET, kept promise, GETSET", N: 3, InitialHolders: 3, Losses: 1, KeepPromises: true,
		Ops: []Op{lockA, setB, setAfterB, setC}},
	{Name: "restart, held, UNLOCK, LOCK", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "two restarts, LOCK, UNLOCK", N: 3, Losses: 2, SlowTicks: 2, Restarts: 2, Ops: []Op{lockA, unlockA}},
	{Name: "restart with older data, held, UNLOCK, LOCK", N: 3, InitialHolders: 3, RestartWithOlderCells: true, Losses: 1, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, unlockA, lockB}},
	{Name: "fences: restart, held by two, UNLOCK, LOCK", N: 3, InitialHolders: 2, Losses: 1, SlowTicks: 1, Restarts: 1,
		Ops: []Op{fencedA, unlockA, fencedB}},
	{Name: "long values: held, GETSET, GET, GET", N: 3, InitialHolders: 3, Ops: []Op{lockA, setB, get, getAfter3}, PreferSomeMasters: true,
		Variant: longValues()},
	{Name: "5 masters, LOCK, UNLOCK, LOCK", N: 5, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "handed on: held, UNLOCK, LOCK by the same proxy, any losses", N: 3, InitialHolders: 3, Losses: -1,
		Ops: []Op{lockA, unlockA, lockBSameProxy}},
	{Name: "handed on: held by two, UNLOCK, LOCK by the same proxy, LOCK by another", N: 3, InitialHolders: 2, Losses: 1,
		Retries: 1, Ops: []Op{lockA, unlockA, lockBSameProxy, lockC}},
	{Name: "handed on: restart, held, UNLOCK, LOCK by the same proxy", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, unlockA, lockBSameProxy}},
	{Name: "handed on: clients that wait no longer, held, UNLOCK, LOCK by the same proxy", N: 3, InitialHolders: 3,
		Timeouts: true, Unreachable: true, Losses: 1, Ops: []Op{lockA, unlockA, lockBSameProxy}},
}

// replacedHeldByTwo has a release of a lock that another proxy has replaced, while a master that
// accepted the new value restarts.
var replacedHeldByTwo = Scenario{
	Name: "restart, held by two, GETSET, UNLOCK, LOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Restarts: 1,
	Ops: []Op{lockA, {Kind: GetSet, Token: 'b', Proxy: 1}, {Kind: Unlock, Token: 'a', After: []int{2}},
		{Kind: Lock, Token: 'c', Proxy: 2, After: []int{3}}},
}

// longScenarios holds the scenarios that make model explores up to the limit.
var longScenarios = []Scenario{
	{Name: "5 masters, held by 3, UNLOCK, GETSET", N: 5, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, unlockA, setC}},
	{Name: "restart, LOCK, LOCK", N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, lockB}},
	{Name: "LOCK, UNLOCK, LOCK, UNLOCK of equal tokens", N: 3, Losses: 1,
		Ops: []Op{lockA, unlockA, lockAOtherProxy, {Kind: Unlock, Token: 'a', Proxy: 1, After: []int{3}}}},
	{Name: "LOCK, LOCK, EXTEND of equal tokens, a lease ends", N: 3, Losses: 1, LeaseTicks: 1,
		Ops: []Op{shortA, lockAOtherProxy, extendA}},
	{Name: "MLOCK, UNLOCK, MLOCK, LOCK, the other key taken", N: 3, Losses: 1, OtherKeyTaken: 2, Retries: 1,
		Ops: []Op{mlockA, unlockA, mlockB, lockC}},
	{Name: "MLOCK, UNLOCK, GETSET, the other key taken", N: 3, Losses: 1, OtherKeyTaken: 2, Ops: []Op{mlockA, unlockA, setC}},
	{Name: "restart, MLOCK, UNLOCK, LOCK, the other key taken", N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, OtherKeyTaken: 1,
		Ops: []Op{mlockA, unlockA, lockB}},
	{Name: "LOCK, UNLOCK, DEL", N: 3, Losses: 1, Ops: []Op{lockA, unlockA, {Kind: Del, Proxy: 1, After: []int{1}}}},
	{Name: "a lease ends, LOCK, UNLOCK, LOCK", N: 3, Losses: 1, LeaseTicks: 1, Ops: []Op{shortA, unlockA, lockB}},
	{Name: "a lease ends, LOCK, UNLOCK, LOCK of equal tokens", N: 3, Losses: 1, LeaseTicks: 1,
		Ops: []Op{shortA, unlockA, {Kind: Lock, Token: 'a', Proxy: 1, ShortLease: true}}},
	{Name: "a lease ends, held, EXTEND, LOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1,
		Ops: []Op{shortA, {Kind: Extend, Token: 'a', ShortLease: true}, lockB}},
	{Name: "a lease ends, held, EXTEND, GETSET", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, Ops: []Op{shortA, extendA, setC}},
	{Name: "a lease ends, held, EXTEND by another, UNLOCK, LOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1,
		Ops: []Op{shortA, {Kind: Extend, Token: 'a', Proxy: 1}, {Kind: Unlock, Token: 'a', After: []int{2}}, lockC}},
	{Name: "a lease ends within a round, LOCK, UNLOCK, LOCK", N: 3, Losses: 1, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{shortA, unlockA, lockC}},
	{Name: "a lease ends within a round, held, GETSET, LOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{shortA, setC, lockC}},
	{Name: "a lease ends within a round, held, EXTEND, GETSET", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{shortA, extendA, setC}},
	{Name: "a removal ends, held, DEL, LOCK", N: 3, InitialHolders: 3, Losses: 1, LeaseTicks: 1, Ops: []Op{lockA, del, lockC}},
	{Name: "held, GETSET, GETSET with losses", N: 3, InitialHolders: 3, Losses: 2, Ops: []Op{lockA, setB, setC}},
	{Name: "held, GETSET, GETSET tried again", N: 3, InitialHolders: 3, Losses: 1, Retries: 1, Ops: []Op{lockA, setB, setC}},
	{Name: "held, GETSET, SET XX, DEL", N: 3, InitialHolders: 3, Ops: []Op{lockA, setB, setXX, {Kind: Del, Proxy: 2}}},
	{Name: "held, GETSET, GET, GET", N: 3, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, setB, get, getAfter3}},
	{Name: "held, UNLOCK, GETSET with losses", N: 3, InitialHolders: 3, Losses: 2, Ops: []Op{lockA, unlockA, setC}},
	{Name: "held, UNLOCK, UNLOCK by another", N: 3, InitialHolders: 3, Losses: 2, Ops: []Op{lockA, unlockA, unlockAOtherProxy}},
	{Name: "mending, held, GETSET, GET", N: 3, InitialHolders: 3, Callbacks: 1, Losses: 1, Ops: []Op{lockA, setB, get}},
	{Name: "mending, LOCK, UNLOCK, LOCK", N: 3, Callbacks: 2, Losses: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "clients that wait no longer, LOCK, UNLOCK, LOCK", N: 3, Timeouts: true, Losses: 1,
		Ops: []Op{lockA, unlockA, lockB}},
	{Name: "clients that wait no longer, held, GETSET, GETSET", N: 3, InitialHolders: 3, Timeouts: true,
		Ops: []Op{lockA, setB, setC}},
	{Name: "clients that wait no longer, held, UNLOCK, GETSET", N: 3, InitialHolders: 3, Timeouts: true, Losses: 1,
		Ops: []Op{lockA, unlockA, setC}},
	{Name: "unreachable masters, LOCK, UNLOCK, LOCK", N: 3, Unreachable: true, Losses: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "unreachable masters, held, UNLOCK, GETSET", N: 3, InitialHolders: 3, Unreachable: true, Losses: 1,
		Ops: []Op{lockA, unlockA, setC}},
	{Name: "unreachable masters, held, GETSET, GETSET", N: 3, InitialHolders: 3, Unreachable: true, Losses: 1,
		Ops: []Op{lockA, setB, setC}},
	{Name: "restart, LOCK, UNLOCK, LOCK", N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "restart, LOCK, UNLOCK by another", N: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, unlockAOtherProxy}},
	{Name: "restart, held, GETSET, GETSET", N: 3, InitialHolders: 3, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, setB, setC}},
	replacedHeldByTwo,
	{Name: "unreachable masters, restart, held by two, GETSET, UNLOCK, LOCK", N: 3, InitialHolders: 2, Unreachable: true, SlowTicks: 1, Restarts: 1,
		Ops: replacedHeldByTwo.Ops},
	{Name: "restart, held by two, EXTEND by another, UNLOCK, LOCK", N: 3, InitialHolders: 2, Losses: 1, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, {Kind: Extend, Token: 'a', Proxy: 1}, {Kind: Unlock, Token: 'a', After: []int{2}}, {Kind: Lock, Token: 'c', Proxy: 2, After: []int{3}}}},
	{Name: "two restarts, held, GETSET, UNLOCK, LOCK", N: 3, InitialHolders: 3, SlowTicks: 2, Restarts: 2, Ops: replacedHeldByTwo.Ops},
	{Name: "4 masters, restart, held by 3, GETSET, UNLOCK, LOCK", N: 4, InitialHolders: 3, SlowTicks: 1, Restarts: 1, Ops: replacedHeldByTwo.Ops},
	{Name: "restart, held, GETSET, kept promise, GETSET", N: 3, InitialHolders: 3, KeepPromises: true, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, setB, setAfterB, setC}},
	{Name: "restart, a lease ends, held, EXTEND, LOCK", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1, LeaseTicks: 1,
		Ops: []Op{shortA, extendA, lockB}},
	{Name: "fences: LOCK, UNLOCK, LOCK, UNLOCK, LOCK", N: 3, Retries: 1,
		Ops: []Op{fencedA, unlockA, fencedB, {Kind: Unlock, Token: 'b', Proxy: 1, After: []int{3}, AfterSuccess: true},
			{Kind: Lock, Token: 'c', Fence: true, After: []int{2}}}},
	{Name: "fences: held, DEL, LOCK for a short while, LOCK", N: 3, InitialHolders: 3, Retries: 1, LeaseTicks: 1, BriefLeases: true,
		Ops: []Op{lockA, del, {Kind: Lock, Token: 'b', Proxy: 1, ShortLease: true, Fence: true, After: []int{2}},
			{Kind: Lock, Token: 'c', Proxy: 2, Fence: true}}},
	{Name: "restart with older data, held, GETSET, GETSET", N: 3, InitialHolders: 3, RestartWithOlderCells: true, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, setB, setC}},
	{Name: "two restarts, held, UNLOCK, LOCK", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 2, Restarts: 2,
		Ops: []Op{lockA, unlockA, lockB}},
	{Name: "5 masters, held by 3, a lease ends, UNLOCK, LOCK", N: 5, InitialHolders: 3, Losses: 1, LeaseTicks: 1,
		Ops: []Op{shortA, unlockA, lockB}},
	{Name: "4 masters, LOCK, UNLOCK, LOCK", N: 4, Losses: 1, Ops: []Op{lockA, unlockA, lockB}},
	{Name: "held, UNLOCK, GETSET, LOCK of the same token", N: 3, InitialHolders: 3,
		Ops: []Op{lockA, unlockA, setC, {Kind: Lock, Token: 'a', Proxy: 2}}},
	{Name: "long values: held, GETSET, GET, GET with losses", N: 3, InitialHolders: 3, Losses: 1,
		Ops: []Op{lockA, setB, get, getAfter3}, PreferSomeMasters: true, Variant: longValues()},
	{Name: "long values: restart, held, GETSET, GET", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1,
		Ops: []Op{lockA, setB, get}, PreferSomeMasters: true, Variant: longValues()},
	{Name: "restart, held, GETSET, GET", N: 3, InitialHolders: 3, Losses: 1, SlowTicks: 1, Restarts: 1, Ops: []Op{lockA, setB, get}},
	{Name: "5 masters, held by 3, UNLOCK, DEL", N: 5, InitialHolders: 3, Losses: 1, Ops: []Op{lockA, unlockA, del}},
	{Name: "all well: held, GETSET, GETSET", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 2, Ops: []Op{lockA, setB, setC}},
	{Name: "all well: held, UNLOCK, GETSET", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 2, Ops: []Op{lockA, unlockA, setC}},
	{Name: "all well: held, UNLOCK, UNLOCK by another", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 2,
		Ops: []Op{lockA, unlockA, unlockAOtherProxy}},
	{Name: "all well: held, DEL, LOCK", N: 3, InitialHolders: 3, RequireQuorum: true, Retries: 2, Ops: []Op{lockA, del, lockC}},
}

// These constants limit the number of states of each scenario. The explorer visits larger scenarios
// breadth first up to the limit.
const (
	quickLimit = 50_000
	longLimit  = 600_000
	wholeLimit = 8_000_000
)

func TestScenarios(t *testing.T) {
	for _, s := range quickScenarios {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.SampleCount(quickLimit)) })
	}
	if !exploresAll() {
		return
	}
	for _, s := range completeScenarios {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.StateLimit(quickLimit, wholeLimit)) })
	}
	for _, s := range longScenarios {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, redistest.StateLimit(quickLimit, longLimit)) })
	}
}
