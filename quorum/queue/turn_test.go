package queue

import (
	"testing"
	"time"
)

// TestTurnAlone: where nobody waits elsewhere the lock is handed on without an end, and that is asked for now and then.
func TestTurnAlone(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	asked := 0
	for i := range 1000 { // a ms each
		if one.granted(5, now) {
			asked++
			one.answered("", 5, now)
		}
		now = now.Add(ms)
		if cue, _, told := one.released(now); !told || cue != TryNow {
			t.Fatalf("release %d: cue %d, %v", i, cue, told)
		}
	}
	if want := 1000 * int(ms) / int(askPause); asked < want-1 || asked > want {
		t.Errorf("asked %d times in a second, want %d", asked, want)
	}
}

// TestTurnShared: where others wait, all who waited are served, then the others; nobody waits for those who have gone.
func TestTurnShared(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	for round := range 3 {
		for i := range 4 {
			if asks := one.granted(3, now); asks != (i == 3) {
				t.Errorf("round %d, grant %d: it asks: %v", round, i, asks)
			}
			if i == 3 {
				one.answered("other", 3, now)
			}
			now = now.Add(ms)
			cue, to, told := one.released(now)
			if want := map[bool]Cue{true: Yield, false: TryNow}[i == 3]; !told || cue != want || (to == "other") != (i == 3) {
				t.Errorf("round %d, grant %d: %d, to %q", round, i, cue, to)
			}
		}
		if cue, to, told := one.answered("other", 1, now); !told || cue != Yield || to != "" || one.entered(now) != Yield {
			t.Error("it is not left to those who wait")
		}
		one.lost(now) // they have taken it
		if one.entered(now) != TryNow {
			t.Error("it waits for those who came")
		}
	}
	one.granted(0, now)
	one.answered("other", 1, now)
	one.released(now)
	if cue, _, told := one.answered("", 1, now); !told || cue != LookNow || one.next != "" || one.entered(now) != TryNow {
		t.Errorf("they have gone: %d, %+v", cue, one)
	}
}

// TestTurnOfThoseWhoDoNotCome: they are waited for as long as a gap.
func TestTurnOfThoseWhoDoNotCome(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.granted(0, now)
	one.answered("other", 1, now)
	one.released(now)
	if one.entered(now.Add(longestGap-1)) != Yield || one.entered(now.Add(longestGap)) != TryNow {
		t.Error("the gap has another end")
	}
	if one.granted(0, now.Add(longestGap)) {
		t.Error("it asks for those who did not come")
	}
	if cue, _, _ := one.released(now.Add(longestGap)); cue != TryNow {
		t.Errorf("they did not come: %d", cue)
	}
	if one.granted(0, now.Add(longestGap+absence)) || !one.granted(0, now.Add(longestGap+absence+askPause)) {
		t.Error("others are not asked for again")
	}
}

// TestTurnThatReturns: one to whom the lock was left, and who has left it to this process again, did come.
func TestTurnThatReturns(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	for range 3 {
		if !one.granted(0, now) {
			t.Error("it does not ask whether the other one waits again")
		}
		one.answered("other", 1, now)
		if cue, to, _ := one.released(now); cue != Yield || to != "other" {
			t.Errorf("%d, to %q", cue, to)
		}
		now = now.Add(ms)
		one.returned(now)
	}
}

// TestTurnIsLostEarly: a release that another was quicker to use ends the turn, and others are asked again soon.
func TestTurnIsLostEarly(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.granted(9, now)
	one.lost(now) // in the hands of one who was served here
	if !one.isOurs() || one.served != 1 {
		t.Errorf("it is thought to be another's: %+v", one)
	}
	one.released(now)
	one.lost(now)
	if one.isOurs() || one.served != 0 {
		t.Errorf("%+v", one)
	}
	for range 3 {
		if !one.granted(0, now) {
			t.Error("after others had it, it does not ask each time")
		}
		now = now.Add(ms)
	}
}

// TestTurnIsNotForEver: many waiters, or slow ones, let others have it, too.
func TestTurnIsNotForEver(t *testing.T) {
	for after, want := range map[time.Duration]Cue{longestTurn: TryNow, longestTurn + ms: Yield} {
		var one turn
		now := time.Unix(1000, 0)
		one.granted(1000, now)
		one.answered("other", 1, now)
		if cue, _, _ := one.released(now.Add(after)); cue != want {
			t.Errorf("after %v: %d", after, cue)
		}
	}
}

// TestToldTwice: the gap does not end because the same release is told again.
func TestToldTwice(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.granted(0, now)
	one.answered("other", 1, now)
	if cue, _, told := one.released(now); !told || cue != Yield {
		t.Fatalf("%d", cue)
	}
	if cue, _, told := one.released(now); told {
		t.Errorf("%d", cue)
	}
}
