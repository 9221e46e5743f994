package model

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// wide holds scenarios for random walks, because they are too large to explore.
var wide = []Scenario{
	{Name: "replacing", N: 3, Held: 3, Losses: 3, Retries: 3, Keep: true, Slow: 1, Fires: 3,
		Ops: []Op{lockA, setB, setAfterB, setXX, {Do: Del, Proxy: 2}, {Do: Get, Proxy: 2, After: []int{5}}}},
	{Name: "releasing", N: 3, Held: 3, Losses: 3, Retries: 2, Leases: 2, Slow: 1, Fires: 2,
		Ops: []Op{shortA, unlockA, setC, {Do: Lock, Token: 'a', Proxy: 2},
			{Do: Unlock, Token: 'a', Proxy: 2, After: []int{4}}, {Do: Get, Proxy: 1, After: []int{3}}}},
	{Name: "taking", N: 3, Losses: 3, Retries: 2, Leases: 2, Slow: 1, Fires: 2,
		Ops: []Op{shortA, unlockA, lockAgain, {Do: Unlock, Token: 'a', Proxy: 1, After: []int{3}}, lockC,
			{Do: Extend, Token: 'a', Proxy: 2}}},
	{Name: "restarting", N: 3, Held: 3, Losses: 2, Retries: 2, Keep: true, Slow: 3, Restarts: 2,
		Ops: []Op{lockA, setB, setAfterB, setC, unlockA, {Do: Lock, Token: 'e', Proxy: 2}}},
	{Name: "restarting with older data", N: 3, Held: 3, Older: true, Losses: 2, Retries: 2, Slow: 3, Restarts: 2,
		Leases: 1, Ops: []Op{shortA, setB, {Do: Extend, Token: 'a', After: []int{1}}, unlockA, lockC}},
	{Name: "5 masters, releasing", N: 5, Held: 3, Losses: 3, Retries: 2, Leases: 1,
		Ops: []Op{shortA, unlockA, setC, {Do: Lock, Token: 'a', Proxy: 2}}},
	{Name: "5 masters, restarting", N: 5, Held: 3, Losses: 2, Retries: 2, Slow: 2, Restarts: 2,
		Ops: []Op{lockA, unlockA, setC, {Do: Lock, Token: 'a', Proxy: 2}}},
	{Name: "locking after a removal", N: 3, Removed: true, Losses: 2, Slow: 1, Retries: 3, Fires: 3,
		Ops: []Op{lockA, del, {Do: Lock, Token: 'c', Proxy: 1, After: []int{2}}, {Do: Get, Proxy: 2, After: []int{1, 3}}}},
}

func TestWalks(t *testing.T) {
	steps := redistest.Sampled(1_000)
	if all() {
		steps = 50_000
	}
	for _, s := range wide {
		t.Run(s.Name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			began := time.Now()
			r := Walk(s, seed, steps)
			t.Logf("%d steps, %v", r.States, time.Since(began).Round(10*time.Millisecond))
			if r.Violation != "" {
				t.Errorf("seed %d: %s\n%s", seed, r.Violation, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

func TestWalksFindWhatIsWrong(t *testing.T) {
	redistest.SkipShort(t)
	s := wide[1]
	s.Variant = releaseDeletesPromised()
	if r := Walk(s, 1, 100_000); r.Violation == "" {
		t.Errorf("nothing wrong in %d steps", r.States)
	}
}
