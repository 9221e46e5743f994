package model

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
	"redlock-proxy/quorum/cell"
)

// partlyFilledScript leads to this state: of five masters, A to D hold a lock with a short lease. A
// proxy restores it on E, and the accept of its ballot reaches only D.
const partlyFilledScript = `
REPAIR & by proxy 2 starts
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C
deliver & proxy 2's read & at D
deliver & proxy 2's read & at E |
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C
deliver & proxy 2's read & at D
deliver & proxy 2's read & at E |
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C
deliver & proxy 2's read & at D
deliver & proxy 2's read & at E |
deliver & mark & at E |
a round's time passes
fire 660ms
deliver & proxy 2's read & at A
deliver & proxy 2's read & at B
deliver & proxy 2's read & at C
deliver & proxy 2's read & at D
deliver & proxy 2's read & at E |
deliver & proxy 2's prepare & at B
deliver & proxy 2's prepare & at C
deliver & proxy 2's prepare & at D |
deliver & proxy 2's accept & at D
`

// extendPromisedOverride makes masters extend a lock even while a ballot may be running.
func extendPromisedOverride(op cell.Op, s *cell.Store) (cell.Answer, bool) {
	f := s.Get(key)
	if _, ok := op.(cell.Extend); !ok || f.Form != cell.Register {
		return cell.Answer{}, false
	}
	withoutPromise := f.Cell
	withoutPromise.Promised = withoutPromise.Accepted
	s.Put(key, withoutPromise, f.TimeLeft)
	answer := op.Apply(s)
	s.Put(key, f.Cell, s.Get(key).TimeLeft)
	return answer, true
}

// keepHighestExpiryOverride makes a ballot keep the expiry of the highest ballot among its
// promises, even if another promise has a later expiry of the same value.
func keepHighestExpiryOverride(op cell.Op, s *cell.Store) (cell.Answer, bool) {
	switch op := op.(type) {
	case cell.Prepare:
		answer := op.Apply(s)
		if f := answer.KeyStates[0]; f.Form != cell.Absent && f.Accepted == "" {
			answer.KeyStates[0].TimeLeft = 9 * time.Second
		}
		return answer, true
	case cell.Accept:
		op.BaseChange = cell.NoChange
		return op.Apply(s), true
	}
	return cell.Answer{}, false
}

// chainOverrides returns a variant that applies a, and then b if a does not handle the operation.
func chainOverrides(a, b func(cell.Op, *cell.Store) (cell.Answer, bool)) Variant {
	return masterVariant(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		if answer, handled := a(op, s); handled {
			return answer, true
		}
		return b(op, s)
	})
}

// endlessExtend explores an EXTEND to an endless lease, with a concurrent EXTEND to a shorter
// lease, and a LOCK after the shorter lease has expired.
var endlessExtend = Scenario{N: 5, InitialHolders: 4, LeaseTicks: 1, SlowTicks: 2, Callbacks: 1, Losses: 1, Retries: 2, Restarts: 1, Ops: []Op{
	shortA, repairBy(1), {Kind: Extend, Token: 'a', After: []int{1}}, {Kind: Extend, Token: 'a', ShortLease: true, Proxy: 2},
	{Kind: Get, Proxy: 2}, {Kind: Lock, Token: 'b', Proxy: 3},
}}

// TestExtendDuringBallots checks that no ballot shortens a granted lease. This holds for a ballot
// that was promised before the EXTEND, and for a ballot that finds another accepted ballot.
func TestExtendDuringBallots(t *testing.T) {
	limit := max(quickLimit, redistest.StateLimit(quickLimit, longLimit))
	run := func(name, script string, v Variant) Result {
		s := endlessExtend
		s.Variant = v
		r := follow(t, s, partlyFilledScript+script, limit)
		t.Logf("%s: %d states follow, complete: %v, %s", name, r.States, r.Complete, r.Violation)
		return r
	}
	for _, v := range []Variant{{}, masterVariant(keepHighestExpiryOverride)} {
		if r := run("extending where no ballot may be under way", "", v); r.Violation != "" {
			t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
		}
	}
	for _, v := range []struct {
		name, script string
		Variant
	}{
		{"extending at any time, beside a ballot that extends", ballotDuringExtendScript, masterVariant(extendPromisedOverride)},
		{"extending at any time, and a ballot keeps the end of the highest", keptExpiryScript,
			chainOverrides(extendPromisedOverride, keepHighestExpiryOverride)},
		{"extending at any time, and a master that forgets copies the end of the highest", forgettingCopyScript,
			Variant{Apply: masterVariant(extendPromisedOverride).Apply, CatchUp: CatchUp{ExpiryOfHighestBallot: true}}},
	} {
		if r := run(v.name, v.script, v.Variant); r.Violation == "" {
			t.Errorf("%s: no violation", v.name)
		}
	}
}

// The following scripts lead from partlyFilledScript to violations if masters extend at any time.
const (
	ballotDuringExtendScript = `
EXTEND a by proxy 3 starts
deliver & proxy 3's prepare(13) & at B
deliver & proxy 3's prepare(13) & at C
deliver & proxy 3's prepare(13) & at D |
deliver & proxy 3's prepare(73) & at B
deliver & proxy 3's prepare(73) & at C
deliver & proxy 3's prepare(73) & at D |
EXTEND a by proxy 1 starts
deliver & proxy 1's extend & at A
deliver & proxy 1's extend & at B
deliver & proxy 1's extend & at C |
deliver & proxy 3's accept & at B
deliver & proxy 3's accept & at C
deliver & proxy 3's accept & at D |
a lease's time passes
expiry at B
expiry at C
expiry at D
LOCK b by proxy 4 starts
deliver & proxy 4's take & at B
deliver & proxy 4's take & at C
deliver & proxy 4's take & at D |
`
	keptExpiryScript = `
EXTEND a by proxy 1 starts
deliver & proxy 1's extend & at A
deliver & proxy 1's extend & at B
deliver & proxy 1's extend & at C |
GET & by proxy 3 starts
deliver & proxy 3's read & at A
deliver & proxy 3's read & at B
deliver & proxy 3's read & at C
deliver & proxy 3's read & at D
deliver & proxy 3's read & at E |
deliver & proxy 3's prepare(13) at B
deliver & proxy 3's prepare(13) at C
deliver & proxy 3's prepare(13) at D |
deliver & proxy 3's prepare(73) at B
deliver & proxy 3's prepare(73) at D
deliver & proxy 3's prepare(73) at C | & … yes & yes & yes & …
deliver & proxy 3's accept & at B
deliver & proxy 3's accept & at C
deliver & proxy 3's accept & at D |
a lease's time passes
expiry at B
expiry at C
expiry at D
LOCK b by proxy 4 starts
deliver & proxy 4's take & at B
deliver & proxy 4's take & at C
deliver & proxy 4's take & at D |
`
	forgettingCopyScript = `
EXTEND a by proxy 1 starts
deliver & proxy 1's extend & at A
deliver & proxy 1's extend & at B
deliver & proxy 1's extend & at C |
restart of C
a round's time passes
first pass reads A
first pass reads B
first pass reads D
copies to C
second pass reads A
second pass reads B
second pass reads D
admits C
a lease's time passes
expiry at C
expiry at D
expiry at E
LOCK b by proxy 4 starts
deliver & proxy 4's take & at C
deliver & proxy 4's take & at D
deliver & proxy 4's take & at E |
`
)
