package queue

import (
	"testing"
	"time"
)

// grants has the head get the lock, and reports whether others were to be asked for.
func (t *turn) grants(waiting int, now time.Time) (asks bool) {
	asks = t.asks(waiting, now)
	t.granted(waiting, now)
	return asks
}

// TestTurnAlone: where nobody waits elsewhere the lock is handed on without an end, and that is
// asked for now and then.
func TestTurnAlone(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	asked := 0
	for i := range 1000 { // a ms each
		if one.grants(5, now) {
			asked++
		}
		now = now.Add(ms)
		if cue, passes, told := one.released(5, false, now); !told || cue != TryNow || passes {
			t.Fatalf("release %d: cue %d, %v", i, cue, told)
		}
	}
	if want := 1000 * int(ms) / int(askPause); asked < want-1 || asked > want {
		t.Errorf("asked %d times in a second, want %d", asked, want)
	}
}

// TestTurnShared: where others wait, all who waited are served, then the others; nobody waits for
// those who have gone.
func TestTurnShared(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	for round := range 3 {
		for i := range 4 {
			if asks := one.grants(3, now); asks != (i == 3) {
				t.Errorf("round %d, grant %d: it asks: %v", round, i, asks)
			}
			one.wanted = i == 3
			now = now.Add(ms)
			cue, passes, told := one.released(3, false, now)
			if want := map[bool]Cue{true: Yield, false: TryNow}[i == 3]; !told || cue != want || passes != (i == 3) {
				t.Errorf("round %d, grant %d: %d, %v", round, i, cue, passes)
			}
		}
		if cue, told := one.left("other", now); !told || cue != Yield || one.to != "other" || one.entered(now) != Yield {
			t.Error("it is not left to those who wait")
		}
		one.lost(now) // they have taken it
		if one.entered(now) != TryNow {
			t.Error("it waits for those who came")
		}
	}
	one.grants(0, now)
	one.released(0, false, now)
	if cue, told := one.left("", now); !told || cue != TryNow || one.wanted || one.entered(now) != TryNow {
		t.Errorf("nobody waits there: %d, %+v", cue, one)
	}
}

// TestTurnOfThoseWhoDoNotCome: they are waited for as long as a gap.
func TestTurnOfThoseWhoDoNotCome(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(0, now)
	one.wanted = true
	one.released(0, false, now)
	one.left("other", now)
	if one.entered(now.Add(longestGap-1)) != Yield || one.entered(now.Add(longestGap)) != TryNow {
		t.Error("the gap has another end")
	}
	if one.grants(0, now.Add(longestGap)) {
		t.Error("it asks for those who did not come")
	}
	if cue, passes, _ := one.released(0, false, now.Add(longestGap)); cue != TryNow || passes {
		t.Errorf("they did not come: %d", cue)
	}
	if one.grants(0, now.Add(longestGap+absence)) || !one.grants(0, now.Add(longestGap+absence+askPause)) {
		t.Error("others are not asked for again")
	}
}

// TestTurnThatReturns: one to whom the lock was left, and who has left it to this process again,
// did come.
func TestTurnThatReturns(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	for range 3 {
		if !one.grants(0, now) {
			t.Error("it does not ask whether the other one waits again")
		}
		one.wanted = true
		if cue, passes, _ := one.released(0, false, now); cue != Yield || !passes {
			t.Errorf("%d, %v", cue, passes)
		}
		one.left("other", now)
		now = now.Add(ms)
		one.returned(now)
	}
}

// TestTurnIsLostEarly: a release that another was quicker to use ends the turn, and others are
// asked again soon.
func TestTurnIsLostEarly(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(9, now)
	one.lost(now) // in the hands of one who was served here
	if !one.isOurs() || one.served != 1 {
		t.Errorf("it is thought to be another's: %+v", one)
	}
	one.released(9, false, now)
	one.lost(now)
	if one.isOurs() || one.served != 0 {
		t.Errorf("%+v", one)
	}
	for range 3 {
		if !one.grants(0, now) {
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
		one.grants(1000, now)
		one.wanted = true
		if cue, _, _ := one.released(1000, false, now.Add(after)); cue != want {
			t.Errorf("after %v: %d", after, cue)
		}
	}
}

// TestToldTwice: the gap does not end because the same release is told again.
func TestToldTwice(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(0, now)
	one.wanted = true
	if cue, _, told := one.released(0, false, now); !told || cue != Yield {
		t.Fatalf("%d", cue)
	}
	if cue, _, told := one.released(0, false, now); told {
		t.Errorf("%d", cue)
	}
}
