package queue

import (
	"testing"
	"time"
)

// TestTurnAlone: without others there is a gap each 300 ms.
func TestTurnAlone(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	gaps := 0
	for range 1000 { // a ms each
		one.granted(5, now)
		now = now.Add(ms)
		if cue, told := one.released(now, nil); told && cue == Yield {
			gaps++
		}
	}
	if gaps != 3 {
		t.Errorf("%d gaps in a second, want 3", gaps)
	}
}

// TestTurnOfTheOnlyProcess: there is no gap where no other is known, until one is found to have the lock.
func TestTurnOfTheOnlyProcess(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	only := func() bool { return true }
	for range 1000 {
		one.granted(5, now)
		now = now.Add(ms)
		if cue, told := one.released(now, only); !told || cue != TryNow {
			t.Fatalf("cue %d, %v", cue, told)
		}
	}
	one.lost()
	one.granted(0, now)
	if cue, _ := one.released(now, only); cue != Yield {
		t.Errorf("with another: %d", cue)
	}
}

// TestTurnShared: where another process took the lock in the gap, all who waited are served, then the others.
func TestTurnShared(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.granted(3, now)
	now = now.Add(longestStreak + ms)
	if cue, _ := one.released(now, nil); cue != Yield {
		t.Fatal("no gap")
	}
	one.lost()
	for round := range 3 {
		for i := range 4 {
			one.granted(3, now)
			now = now.Add(ms)
			cue, told := one.released(now, nil)
			if want := map[bool]Cue{true: Yield, false: TryNow}[i == 3]; !told || cue != want {
				t.Errorf("round %d, grant %d: %d", round, i, cue)
			}
		}
		if round < 2 {
			one.lost()
		}
	}
	one.granted(3, now) // nobody wanted it
	if one.shared || one.contended {
		t.Error("it still shares")
	}
}

// TestTurnIsLostEarly: a release that another was quicker to use ends the turn, and tells of the other.
func TestTurnIsLostEarly(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.granted(9, now)
	one.lost() // in those of one who was served here
	if one.shared || one.served != 1 {
		t.Errorf("it shares with itself: %+v", one)
	}
	one.released(now, nil)
	one.lost()
	if !one.shared || !one.contended || one.served != 0 {
		t.Errorf("%+v", one)
	}
}

// TestFoundInOtherHands: who finds the lock held by none of this process shares it.
func TestFoundInOtherHands(t *testing.T) {
	var one turn
	one.lost()
	if !one.shared || one.contended {
		t.Errorf("%+v", one)
	}
}

// TestTurnIsNotForEver: many waiters, or slow ones, let others have it, too.
func TestTurnIsNotForEver(t *testing.T) {
	one := turn{shared: true}
	now := time.Unix(1000, 0)
	one.granted(1000, now)
	if cue, _ := one.released(now.Add(longestTurn), nil); cue != TryNow {
		t.Errorf("%d", cue)
	}
	one.granted(1000, now)
	if cue, _ := one.released(now.Add(longestTurn+ms), nil); cue != Yield {
		t.Errorf("%d", cue)
	}
}

// TestToldTwice: the gap does not end because the same release is told again.
func TestToldTwice(t *testing.T) {
	one := turn{shared: true}
	now := time.Unix(1000, 0)
	one.granted(0, now)
	if cue, told := one.released(now, nil); !told || cue != Yield {
		t.Fatalf("%d", cue)
	}
	if cue, told := one.released(now, nil); told {
		t.Errorf("%d", cue)
	}
}
