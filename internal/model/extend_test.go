package model

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/quorum/cell"
)

// partlyFilled leads to this state: of five masters, A to D hold a lock with a short lease. A proxy
// restores it on E, and the accept of its ballot reaches only D.
const partlyFilled = `
MEND & by proxy 2 starts
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

// extendsPromised makes masters extend a lock even while a ballot may be running.
func extendsPromised(op cell.Op, s *cell.Store) (cell.Answer, bool) {
	f := s.Look(key)
	if _, is := op.(cell.Extend); !is || f.Form != cell.Register {
		return cell.Answer{}, false
	}
	settled := f.Cell
	settled.Promised = settled.Accepted
	s.Put(key, settled, f.Left)
	answer := op.Apply(s)
	s.Put(key, f.Cell, s.Look(key).Left)
	return answer, true
}

// keepsEndOfHighest makes a ballot keep the expiry of the highest ballot among its promises, even
// if other promises have a later expiry of the same value.
func keepsEndOfHighest(op cell.Op, s *cell.Store) (cell.Answer, bool) {
	switch op := op.(type) {
	case cell.Prepare:
		answer := op.Apply(s)
		if f := answer.Found[0]; f.Form != cell.Absent && f.Accepted == "" {
			answer.Found[0].Left = 9 * time.Second
		}
		return answer, true
	case cell.Accept:
		op.Base = cell.NoChange
		return op.Apply(s), true
	}
	return cell.Answer{}, false
}

// both applies a, and then b if a does not handle the operation.
func both(a, b func(cell.Op, *cell.Store) (cell.Answer, bool)) Variant {
	return masters(func(op cell.Op, s *cell.Store) (cell.Answer, bool) {
		if answer, did := a(op, s); did {
			return answer, true
		}
		return b(op, s)
	})
}

// lasting is a scenario around an EXTEND to an endless lease, with a concurrent EXTEND to a shorter
// lease, and a LOCK after that lease.
var lasting = Scenario{N: 5, Held: 4, Leases: 1, Slow: 2, Fires: 1, Losses: 1, Retries: 2, Restarts: 1, Ops: []Op{
	shortA, repairs(1), {Do: Extend, Token: 'a', After: []int{1}}, {Do: Extend, Token: 'a', Short: true, Proxy: 2},
	{Do: Get, Proxy: 2}, {Do: Lock, Token: 'b', Proxy: 3},
}}

// TestExtendBesideBallots: no ballot shortens a granted lease. This holds for a ballot that was
// promised before the EXTEND, and for a ballot that finds another accepted ballot.
func TestExtendBesideBallots(t *testing.T) {
	limit := quickLimit
	if all() {
		limit = longLimit
	}
	found := func(name, script string, v Variant) Result {
		s := lasting
		s.Variant = v
		r := follow(t, s, partlyFilled+script, limit)
		t.Logf("%s: %d states follow, complete: %v, %s", name, r.States, r.Complete, r.Violation)
		return r
	}
	for _, v := range []Variant{{}, masters(keepsEndOfHighest)} {
		if r := found("extending where no ballot may be under way", "", v); r.Violation != "" {
			t.Errorf("%s\n%s", r.Violation, strings.Join(r.Trace, "\n"))
		}
	}
	for _, v := range []struct {
		name, script string
		Variant
	}{
		{"extending at any time, beside a ballot that extends", besideExtend, masters(extendsPromised)},
		{"extending at any time, and a ballot keeps the end of the highest", thenKept,
			both(extendsPromised, keepsEndOfHighest)},
		{"extending at any time, and a master that forgets copies the end of the highest", thenForgotten,
			Variant{Apply: masters(extendsPromised).Apply, CatchUp: CatchUp{HighestEnd: true}}},
	} {
		if r := found(v.name, v.script, v.Variant); r.Violation == "" {
			t.Errorf("%s: nothing is wrong", v.name)
		}
	}
}

// Scripts that lead from partlyFilled to violations if masters extend at any time.
const (
	besideExtend = `
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
	thenKept = `
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
	thenForgotten = `
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
