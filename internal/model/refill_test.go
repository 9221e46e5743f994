package model

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// repairBy makes a proxy compare and repair the key on its own, after these operations.
func repairBy(proxy int, after ...int) Op { return Op{Kind: Repair, Proxy: proxy, After: after} }

var getByProxy3 = Op{Kind: Get, Proxy: 2, After: []int{2}}

// refillScenarios holds scenarios in which proxies restore the key on masters that lack it.
var refillScenarios = []Scenario{
	{Name: "held by 2, UNLOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Callbacks: 1, Ops: []Op{lockA, unlockA, repairBy(1)}},
	{Name: "held by 2, two refillers, UNLOCK", N: 3, InitialHolders: 2, SlowTicks: 1, Callbacks: 2,
		Ops: []Op{lockA, unlockA, repairBy(1), repairBy(2)}},
	{Name: "held by 2, UNLOCK, LOCK, GET", N: 3, InitialHolders: 2, SlowTicks: 1, Callbacks: 1,
		Ops: []Op{lockA, unlockA, repairBy(1), lockC, getAfter2}},
	{Name: "held by 2, lease ends, LOCK", N: 3, InitialHolders: 2, LeaseTicks: 1, SlowTicks: 1, Callbacks: 1, Ops: []Op{shortA, repairBy(1), lockC}},
	{Name: "held by 2, GETSET", N: 3, InitialHolders: 2, SlowTicks: 1, Callbacks: 1, Ops: []Op{lockA, setB, repairBy(1), getByProxy3}},
	{Name: "held by 2, brief value ends, GET", N: 3, InitialHolders: 2, LeaseTicks: 1, SlowTicks: 1, Callbacks: 1, BriefLeases: true,
		Ops: []Op{lockA, {Kind: GetSet, Token: 'b', ShortLease: true}, repairBy(1), getByProxy3}},
	{Name: "held by 2, a lost answer, UNLOCK, LOCK", N: 3, InitialHolders: 2, Losses: 1, SlowTicks: 1, Callbacks: 1,
		Ops: []Op{lockA, unlockA, repairBy(1), lockC}},
	{Name: "held by 2, restart, UNLOCK", N: 3, InitialHolders: 2, SlowTicks: 2, Restarts: 1, Callbacks: 1,
		Ops: []Op{lockA, unlockA, repairBy(1)}},
	{Name: "held by 2, restart with older data, UNLOCK", N: 3, InitialHolders: 2, RestartWithOlderCells: true, SlowTicks: 2, Restarts: 1, Callbacks: 1,
		Ops: []Op{lockA, unlockA, repairBy(1)}},
	{Name: "held by 2, DEL ends, LOCK", N: 3, InitialHolders: 2, LeaseTicks: 1, SlowTicks: 1, Callbacks: 1,
		Ops: []Op{lockA, repairBy(2), del, lockC}},
	{Name: "take stuck, DEL ends, GET", N: 3, LeaseTicks: 1, SlowTicks: 1, Callbacks: 1,
		Ops: []Op{lockA, repairBy(1, 1), {Kind: Del, Proxy: 1, After: []int{2}}, {Kind: Get, Proxy: 1, After: []int{3}}}},
	{Name: "5 masters, held by 3, UNLOCK", N: 5, InitialHolders: 3, SlowTicks: 1, Callbacks: 1, Ops: []Op{lockA, unlockA, repairBy(1)}},
	{Name: "5 masters, held by 3, two refillers, UNLOCK", N: 5, InitialHolders: 3, SlowTicks: 1, Callbacks: 2,
		Ops: []Op{lockA, unlockA, repairBy(1), repairBy(2)}},
	{Name: "5 masters, held by 3, restart, UNLOCK", N: 5, InitialHolders: 3, SlowTicks: 1, Restarts: 1, Callbacks: 1,
		Ops: []Op{lockA, unlockA, repairBy(1)}},
	{Name: "all well: held by 2, GETSET", N: 3, InitialHolders: 2, RequireQuorum: true, Retries: 2, Callbacks: 1, Variant: withoutRefillWait(),
		Ops: []Op{lockA, repairBy(1), setB}},
}

func TestRefills(t *testing.T) {
	limit := redistest.StateLimit(quickLimit, longLimit)
	for _, s := range refillScenarios {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, limit) })
	}
}

// forgottenPromiseScript leads to this state: C has promised a ballot of an UNLOCK, has lost its
// cell when the lease expired, and is marked.
const forgottenPromiseScript = `
# each proxy uses a higher ballot
UNLOCK x by proxy 3 starts
deliver & proxy 3's prepare(13) at A
deliver & proxy 3's prepare(13) at C
deliver & proxy 3's prepare(13) at B |
UNLOCK x by proxy 2 starts
deliver & proxy 2's prepare(12) at A
deliver & proxy 2's prepare(12) at C
deliver & proxy 2's prepare(12) at B |
EXTEND a by proxy 1 starts
deliver & extend( & at A
deliver & extend( & at B | & yes[11:a] yes[11:a] …
UNLOCK a by proxy 3 starts
deliver & proxy 3's prepare(23) at C
a lease's time passes
expiry at C
deliver & extend( & at C
REPAIR & by proxy 1 starts
deliver & proxy 1's read & at A
deliver & proxy 1's read & at B
deliver & proxy 1's read & at C |
deliver & proxy 1's read & at A
deliver & proxy 1's read & at B
deliver & proxy 1's read & at C |
deliver & proxy 1's read & at A
deliver & proxy 1's read & at B
deliver & proxy 1's read & at C |
deliver & proxy 1's mark & at C |
`

// guidedScenarios holds scenarios that begin in states which a search would hardly reach.
var guidedScenarios = []struct {
	Scenario
	script string
}{
	// The promises that a master made before it lost its cell must expire before the master is
	// filled. Otherwise two ballots count the master.
	{Scenario{Name: "a promise is forgotten", N: 3, InitialHolders: 3, LeaseTicks: 1, SlowTicks: 1, BriefLeases: true, Callbacks: 1, Retries: 4, Ops: []Op{
		shortA, extendA, {Kind: Unlock, Token: 'x', Proxy: 2}, {Kind: Unlock, Token: 'x', Proxy: 1},
		{Kind: Unlock, Token: 'a', Proxy: 2, After: []int{3}}, repairBy(0),
		{Kind: GetSet, Token: 'b', Proxy: 1, After: []int{4}}, {Kind: Get, Proxy: 3, After: []int{7}},
	}}, forgottenPromiseScript},
	{Scenario{Name: "a master refused", N: 3, Losses: 1, SlowTicks: 1, Callbacks: 2, Ops: []Op{
		lockA, lockB, repairBy(2), {Kind: Unlock, Token: 'a', After: []int{3}}, {Kind: Get, Proxy: 3, After: []int{4}},
	}}, `
LOCK a & starts
LOCK b & starts
deliver & proxy 2's take & at C
deliver & proxy 1's take & at A
deliver & proxy 1's take & at C
deliver & proxy 1's take & at B | & yes yes no
deliver & proxy 2's take & at A
deliver & proxy 2's take & at B |
deliver & undo & at C
REPAIR & by proxy 3 starts
deliver & proxy 3's read & at A
deliver & proxy 3's read & at B
deliver & proxy 3's read & at C |
deliver & proxy 3's read & at A
deliver & proxy 3's read & at B
deliver & proxy 3's read & at C |
deliver & proxy 3's read & at A
deliver & proxy 3's read & at B
deliver & proxy 3's read & at C |
deliver & mark & at C |
`},
	{Scenario{Name: "a release is late", N: 3, InitialHolders: 2, SlowTicks: 2, Callbacks: 2, Ops: []Op{
		lockA, unlockA, repairBy(1), repairBy(2), {Kind: Get, Proxy: 3, After: []int{3}}, {Kind: Get, Proxy: 3, After: []int{5}},
	}}, `
REPAIR & by proxy 2 starts
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C |
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C |
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C |
deliver & mark & at C |
a round's time passes
UNLOCK a & starts
fire 660ms
`},
}

func TestGuidedRefills(t *testing.T) {
	for _, g := range guidedScenarios {
		t.Run(g.Name, func(t *testing.T) {
			r := follow(t, g.Scenario, g.script, redistest.SampleCount(quickLimit))
			if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
				t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// TestRefillWaitsForForgottenPromises checks that a refill has to wait. Without the wait, two
// ballots count a master that has lost its cell with its promise.
func TestRefillWaitsForForgottenPromises(t *testing.T) {
	s := Scenario{N: 3, InitialHolders: 3, LeaseTicks: 1, SlowTicks: 1, BriefLeases: true, Callbacks: 1, Losses: 1, Retries: 4, Ops: []Op{
		shortA, extendA, {Kind: Unlock, Token: 'x', Proxy: 2}, {Kind: Unlock, Token: 'x', Proxy: 1},
		{Kind: Unlock, Token: 'a', Proxy: 2, After: []int{3}}, repairBy(0),
		{Kind: GetSet, Token: 'b', Proxy: 1, After: []int{4}}, {Kind: Get, Proxy: 3, After: []int{7}},
	}}
	r := follow(t, s, forgottenPromiseScript, quickLimit)
	if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
	}
	s.Variant = withoutRefillWait()
	r = follow(t, s, forgottenPromiseScript+`
fire 660ms
deliver & proxy 1's read & at A
deliver & proxy 1's read & at B
deliver & proxy 1's read & at C |
deliver & proxy 1's prepare(21) at A
deliver & proxy 1's prepare(21) at B
deliver & proxy 1's prepare(21) at C |
deliver & proxy 1's accept & at A
deliver & proxy 1's accept & at B |
deliver & fill( & at C
GETSET b by proxy 2 starts
deliver & proxy 2's prepare(22) at B
deliver & proxy 2's prepare(22) at C | & … yes & yes
deliver & proxy 2's accept & at B
deliver & proxy 2's accept & at C |
deliver & proxy 3's prepare(23) at A | & yes & unknown yes
deliver & proxy 3's accept & at A
`, quickLimit)
	if t.Logf("%d states follow: %s", r.States, r.Violation); r.Violation == "" {
		t.Error("no violation without the wait")
	}
}
