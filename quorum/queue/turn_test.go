package queue

import (
	"testing"
	"time"
)

// grants grants the lock to the head, and reports whether a question was due.
func (t *turn) grants(waiting int, now time.Time) (asks bool) {
	asks = t.shouldAsk(waiting, now)
	t.granted(waiting, now)
	return asks
}

// TestTurnAlone: if no other process waits, the lock is handed on without limit, with a question
// from time to time.
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

// TestTurnShared: if another process waits, all waiters are served first, then the other process.
// No waiter waits for a process that has left.
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
			if want := map[bool]Signal{true: LeaveToPeer, false: TryNow}[i == 3]; !told || cue != want ||
				passes != (i == 3) {
				t.Errorf("round %d, grant %d: %d, %v", round, i, cue, passes)
			}
		}
		if cue, told := one.leaveToPeer("other", now); !told || cue != LeaveToPeer || one.leftTo != "other" ||
			one.signalOnEntry(now) != LeaveToPeer {
			t.Error("it is not left to those who wait")
		}
		one.foundHeld(now) // the other process has taken it
		if one.signalOnEntry(now) != TryNow {
			t.Error("it waits for those who came")
		}
	}
	one.grants(0, now)
	one.released(0, false, now)
	if cue, told := one.leaveToPeer("", now); !told || cue != TryNow || one.wanted || one.signalOnEntry(now) != TryNow {
		t.Errorf("nobody waits there: %d, %+v", cue, one)
	}
}

// TestTurnNotTaken: the wait for a process that does not take the lock is limited.
func TestTurnNotTaken(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(0, now)
	one.wanted = true
	one.released(0, false, now)
	one.leaveToPeer("other", now)
	if one.signalOnEntry(now.Add(maxLeaveTime-1)) != LeaveToPeer || one.signalOnEntry(now.Add(maxLeaveTime)) != TryNow {
		t.Error("the gap has another end")
	}
	if one.grants(0, now.Add(maxLeaveTime)) {
		t.Error("it asks for those who did not come")
	}
	if cue, passes, _ := one.released(0, false, now.Add(maxLeaveTime)); cue != TryNow || passes {
		t.Errorf("they did not come: %d", cue)
	}
	if one.grants(0, now.Add(maxLeaveTime+absencePause)) || !one.grants(0, now.Add(maxLeaveTime+absencePause+askPause)) {
		t.Error("others are not asked for again")
	}
}

// TestTurnThatReturns: a process that has left the lock to this process again did take it.
func TestTurnThatReturns(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	for range 3 {
		if !one.grants(0, now) {
			t.Error("it does not ask whether the other one waits again")
		}
		one.wanted = true
		if cue, passes, _ := one.released(0, false, now); cue != LeaveToPeer || !passes {
			t.Errorf("%d, %v", cue, passes)
		}
		one.leaveToPeer("other", now)
		now = now.Add(ms)
		one.receivedFromPeer(now)
	}
}

// TestTurnIsLostEarly: if another process is faster after a release, the turn ends, and the next
// question is due soon.
func TestTurnIsLostEarly(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(9, now)
	one.foundHeld(now) // held by a client of this process
	if !one.isOurs() || one.served != 1 {
		t.Errorf("it is thought to be another's: %+v", one)
	}
	one.released(9, false, now)
	one.foundHeld(now)
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

// TestTurnIsLimited: with many or slow waiters a turn ends at its time limit.
func TestTurnIsLimited(t *testing.T) {
	for after, want := range map[time.Duration]Signal{longestTurn: TryNow, longestTurn + ms: LeaveToPeer} {
		var one turn
		now := time.Unix(1000, 0)
		one.grants(1000, now)
		one.wanted = true
		if cue, _, _ := one.released(1000, false, now.Add(after)); cue != want {
			t.Errorf("after %v: %d", after, cue)
		}
	}
}

// TestReleasedTwice: a repeated report of the same release changes nothing.
func TestReleasedTwice(t *testing.T) {
	var one turn
	now := time.Unix(1000, 0)
	one.grants(0, now)
	one.wanted = true
	if cue, _, told := one.released(0, false, now); !told || cue != LeaveToPeer {
		t.Fatalf("%d", cue)
	}
	if cue, _, told := one.released(0, false, now); told {
		t.Errorf("%d", cue)
	}
}
