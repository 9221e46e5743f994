package model

import (
	"strings"
	"testing"

	"redlock-proxy/internal/redistest"
)

// repairs makes a proxy compare and repair the key on its own, after these operations.
func repairs(proxy int, after ...int) Op { return Op{Do: Repair, Proxy: proxy, After: after} }

var getOf3 = Op{Do: Get, Proxy: 2, After: []int{2}}

// refills holds scenarios in which proxies restore the key on masters that lack it.
var refills = []Scenario{
	{Name: "held by 2, UNLOCK", N: 3, Held: 2, Slow: 1, Fires: 1, Ops: []Op{lockA, unlockA, repairs(1)}},
	{Name: "held by 2, two refillers, UNLOCK", N: 3, Held: 2, Slow: 1, Fires: 2,
		Ops: []Op{lockA, unlockA, repairs(1), repairs(2)}},
	{Name: "held by 2, UNLOCK, LOCK, GET", N: 3, Held: 2, Slow: 1, Fires: 1,
		Ops: []Op{lockA, unlockA, repairs(1), lockC, getAfter2}},
	{Name: "held by 2, lease ends, LOCK", N: 3, Held: 2, Leases: 1, Slow: 1, Fires: 1, Ops: []Op{shortA, repairs(1), lockC}},
	{Name: "held by 2, GETSET", N: 3, Held: 2, Slow: 1, Fires: 1, Ops: []Op{lockA, setB, repairs(1), getOf3}},
	{Name: "held by 2, brief value ends, GET", N: 3, Held: 2, Leases: 1, Slow: 1, Fires: 1, Brief: true,
		Ops: []Op{lockA, {Do: GetSet, Token: 'b', Short: true}, repairs(1), getOf3}},
	{Name: "held by 2, a lost answer, UNLOCK, LOCK", N: 3, Held: 2, Losses: 1, Slow: 1, Fires: 1,
		Ops: []Op{lockA, unlockA, repairs(1), lockC}},
	{Name: "held by 2, restart, UNLOCK", N: 3, Held: 2, Slow: 2, Restarts: 1, Fires: 1,
		Ops: []Op{lockA, unlockA, repairs(1)}},
	{Name: "held by 2, restart with older data, UNLOCK", N: 3, Held: 2, Older: true, Slow: 2, Restarts: 1, Fires: 1,
		Ops: []Op{lockA, unlockA, repairs(1)}},
	{Name: "held by 2, DEL ends, LOCK", N: 3, Held: 2, Leases: 1, Slow: 1, Fires: 1,
		Ops: []Op{lockA, repairs(2), del, lockC}},
	{Name: "take stuck, DEL ends, GET", N: 3, Leases: 1, Slow: 1, Fires: 1,
		Ops: []Op{lockA, repairs(1, 1), {Do: Del, Proxy: 1, After: []int{2}}, {Do: Get, Proxy: 1, After: []int{3}}}},
	{Name: "5 masters, held by 3, UNLOCK", N: 5, Held: 3, Slow: 1, Fires: 1, Ops: []Op{lockA, unlockA, repairs(1)}},
	{Name: "5 masters, held by 3, two refillers, UNLOCK", N: 5, Held: 3, Slow: 1, Fires: 2,
		Ops: []Op{lockA, unlockA, repairs(1), repairs(2)}},
	{Name: "5 masters, held by 3, restart, UNLOCK", N: 5, Held: 3, Slow: 1, Restarts: 1, Fires: 1,
		Ops: []Op{lockA, unlockA, repairs(1)}},
	{Name: "all well: held by 2, GETSET", N: 3, Held: 2, Calm: true, Retries: 2, Fires: 1, Variant: outOfTurn(),
		Ops: []Op{lockA, repairs(1), setB}},
}

func TestRefills(t *testing.T) {
	limit := redistest.Sampled(quickLimit)
	if all() {
		limit = longLimit
	}
	for _, s := range refills {
		t.Run(s.Name, func(t *testing.T) { explore(t, s, limit) })
	}
}

// forgotten leads to this state: C has promised a ballot of an UNLOCK, has lost its cell when the
// lease expired, and is marked.
const forgotten = `
# each counts its ballots further
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
MEND & by proxy 1 starts
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

// guided holds scenarios that begin in states which a search would hardly reach.
var guided = []struct {
	Scenario
	script string
}{
	// The promises that a master made before it lost its cell must expire before it is filled.
	// Otherwise two ballots count the master.
	{Scenario{Name: "a promise is forgotten", N: 3, Held: 3, Leases: 1, Slow: 1, Brief: true, Fires: 1, Retries: 4, Ops: []Op{
		shortA, extendA, {Do: Unlock, Token: 'x', Proxy: 2}, {Do: Unlock, Token: 'x', Proxy: 1},
		{Do: Unlock, Token: 'a', Proxy: 2, After: []int{3}}, repairs(0),
		{Do: GetSet, Token: 'b', Proxy: 1, After: []int{4}}, {Do: Get, Proxy: 3, After: []int{7}},
	}}, forgotten},
	{Scenario{Name: "a master refused", N: 3, Losses: 1, Slow: 1, Fires: 2, Ops: []Op{
		lockA, lockB, repairs(2), {Do: Unlock, Token: 'a', After: []int{3}}, {Do: Get, Proxy: 3, After: []int{4}},
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
MEND & by proxy 3 starts
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
	{Scenario{Name: "a release is late", N: 3, Held: 2, Slow: 2, Fires: 2, Ops: []Op{
		lockA, unlockA, repairs(1), repairs(2), {Do: Get, Proxy: 3, After: []int{3}}, {Do: Get, Proxy: 3, After: []int{5}},
	}}, `
MEND & by proxy 2 starts
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
	for _, g := range guided {
		t.Run(g.Name, func(t *testing.T) {
			r := follow(t, g.Scenario, g.script, redistest.Sampled(quickLimit))
			if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
				t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// TestRefillWaitsForForgottenPromises: without the wait, two ballots count a master that has lost
// its cell with its promise.
func TestRefillWaitsForForgottenPromises(t *testing.T) {
	s := Scenario{N: 3, Held: 3, Leases: 1, Slow: 1, Brief: true, Fires: 1, Losses: 1, Retries: 4, Ops: []Op{
		shortA, extendA, {Do: Unlock, Token: 'x', Proxy: 2}, {Do: Unlock, Token: 'x', Proxy: 1},
		{Do: Unlock, Token: 'a', Proxy: 2, After: []int{3}}, repairs(0),
		{Do: GetSet, Token: 'b', Proxy: 1, After: []int{4}}, {Do: Get, Proxy: 3, After: []int{7}},
	}}
	r := follow(t, s, forgotten, quickLimit)
	if t.Logf("%d states follow, complete: %v", r.States, r.Complete); r.Violation != "" {
		t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
	}
	s.Variant = outOfTurn()
	r = follow(t, s, forgotten+`
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
		t.Error("without the wait nothing is wrong")
	}
}
