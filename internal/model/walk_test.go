package model

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/redistest"
)

// walkScenarios holds scenarios for random walks, because they are too large to explore.
var walkScenarios = []Scenario{
	{Name: "replacing", N: 3, InitialHolders: 3, Losses: 3, Retries: 3, KeepPromises: true, SlowTicks: 1, Callbacks: 3,
		Ops: []Op{lockA, setB, setAfterB, setXX, {Kind: Del, Proxy: 2}, {Kind: Get, Proxy: 2, After: []int{5}}}},
	{Name: "releasing", N: 3, InitialHolders: 3, Losses: 3, Retries: 2, LeaseTicks: 2, SlowTicks: 1, Callbacks: 2,
		Ops: []Op{shortA, unlockA, setC, {Kind: Lock, Token: 'a', Proxy: 2},
			{Kind: Unlock, Token: 'a', Proxy: 2, After: []int{4}}, {Kind: Get, Proxy: 1, After: []int{3}}}},
	{Name: "taking", N: 3, Losses: 3, Retries: 2, LeaseTicks: 2, SlowTicks: 1, Callbacks: 2,
		Ops: []Op{shortA, unlockA, lockAOtherProxy, {Kind: Unlock, Token: 'a', Proxy: 1, After: []int{3}}, lockC,
			{Kind: Extend, Token: 'a', Proxy: 2}}},
	{Name: "restarting", N: 3, InitialHolders: 3, Losses: 2, Retries: 2, KeepPromises: true, SlowTicks: 3, Restarts: 2,
		Ops: []Op{lockA, setB, setAfterB, setC, unlockA, {Kind: Lock, Token: 'e', Proxy: 2}}},
	{Name: "restarting with older data", N: 3, InitialHolders: 3, RestartWithOlderCells: true, Losses: 2, Retries: 2, SlowTicks: 3, Restarts: 2,
		LeaseTicks: 1, Ops: []Op{shortA, setB, {Kind: Extend, Token: 'a', After: []int{1}}, unlockA, lockC}},
	{Name: "5 masters, releasing", N: 5, InitialHolders: 3, Losses: 3, Retries: 2, LeaseTicks: 1,
		Ops: []Op{shortA, unlockA, setC, {Kind: Lock, Token: 'a', Proxy: 2}}},
	{Name: "5 masters, restarting", N: 5, InitialHolders: 3, Losses: 2, Retries: 2, SlowTicks: 2, Restarts: 2,
		Ops: []Op{lockA, unlockA, setC, {Kind: Lock, Token: 'a', Proxy: 2}}},
	{Name: "locking after a removal", N: 3, InitiallyRemoved: true, Losses: 2, SlowTicks: 1, Retries: 3, Callbacks: 3,
		Ops: []Op{lockA, del, {Kind: Lock, Token: 'c', Proxy: 1, After: []int{2}}, {Kind: Get, Proxy: 2, After: []int{1, 3}}}},
}

func TestWalks(t *testing.T) {
	steps := redistest.StateLimit(1_000, 50_000)
	for _, s := range walkScenarios {
		t.Run(s.Name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			start := time.Now()
			r := Walk(s, seed, steps)
			t.Logf("%d steps, %v", r.States, time.Since(start).Round(10*time.Millisecond))
			if r.Violation != "" {
				t.Errorf("seed %d: %s\n%s", seed, r.Violation, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

func TestWalksFindViolations(t *testing.T) {
	redistest.SkipShort(t)
	s := walkScenarios[1]
	s.Variant = releasePromisedVariant()
	if r := Walk(s, 1, 100_000); r.Violation == "" {
		t.Errorf("no violation in %d steps", r.States)
	}
}
