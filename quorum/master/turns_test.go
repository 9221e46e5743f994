package master

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// TestTurns checks that at most two of five masters get long ops at the same time. The next master
// gets long ops as soon as one of the two has answered. Meanwhile all masters get short ops.
func TestTurns(t *testing.T) {
	turns := NewTurns(5)
	lanes := make([]*lane, 5)
	for i := range lanes {
		lanes[i] = newLane(nil, 0, nil)
		lanes[i].turns = turns
	}
	push := func(l *lane, key string, size int) {
		t.Helper()
		o := &op{command: newCommand(0, cell.Accept{Name: key, Value: cell.Value{Present: true,
			Text: strings.Repeat("x", size)}}), round: newRound(1, nil)}
		if claimed, err := l.push(o, false); err != nil || !claimed {
			t.Fatal(claimed, err)
		}
	}
	want := func(i int, keys ...string) {
		t.Helper()
		if got := lanes[i].takeKeys(); !slices.Equal(got, keys) {
			t.Fatalf("master %d is sent %v, want %v", i, got, keys)
		}
	}
	answer := func(i int) {
		l := lanes[i]
		for n := range l.inFlight.ops {
			l.inFlight.replies[n] = reply{State: register.Counted, Answer: cell.Answer{Applied: true}}
		}
		l.inFlight.unload()
		l.releaseTurn()
	}
	for _, l := range lanes {
		push(l, "long", 100_000)
	}
	want(0, "long")
	want(1, "long")
	for i := 2; i < 5; i++ {
		want(i) // no turn is free
		push(lanes[i], "short", 10)
		want(i, "short")
	}
	answer(0) // the third master gets its turn while short ops are in flight
	want(0)
	answer(2)
	want(2, "long")
	for _, o := range lanes[3].shutDown(ErrClosed) {
		o.unref()
	}
	answer(3)
	answer(4)
	answer(1) // the fourth master has no long op left, so the fifth gets the turn
	want(3)
	want(4, "long")
	answer(2)
	answer(4)
	if turns.freeTurns != 2 || len(turns.onTurnQueue) > 0 {
		t.Errorf("%d turns are free, %d masters wait", turns.freeTurns, len(turns.onTurnQueue))
	}
}
