package queue

import (
	"testing"
	"time"
)

// grantToHead grants the lock to the head, and reports whether the take comes with a question.
func (t *turn) grantToHead(waiterCount int, now time.Time) (asksPeers bool) {
	asksPeers = t.shouldAsk(waiterCount, now)
	t.recordGrant(waiterCount, now)
	return asksPeers
}

// TestTurnWithoutPeers checks that the lock is handed on without limit if no other process waits,
// with a question from time to time.
func TestTurnWithoutPeers(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	asks := 0
	for i := range 1000 { // each grant lasts 1 ms
		if tr.grantToHead(5, now) {
			asks++
		}
		now = now.Add(ms)
		if signal, passToPeer, notify := tr.recordRelease(5, false, now); !notify || signal != TryNow || passToPeer {
			t.Fatalf("release %d: signal %d, %v", i, signal, notify)
		}
	}
	if want := 1000 * int(ms) / int(askPause); asks < want-1 || asks > want {
		t.Errorf("asked %d times in a second, want %d", asks, want)
	}
}

// TestSharedTurn checks that a turn serves all waiters of this process before another process that
// waits. A waiter does not wait for a process that no longer waits.
func TestSharedTurn(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	for round := range 3 {
		for i := range 4 {
			if asksPeers := tr.grantToHead(3, now); asksPeers != (i == 3) {
				t.Errorf("round %d, grant %d: it asks: %v", round, i, asksPeers)
			}
			tr.peerWaits = i == 3
			now = now.Add(ms)
			signal, passToPeer, notify := tr.recordRelease(3, false, now)
			if want := map[bool]Signal{true: LeaveToPeer, false: TryNow}[i == 3]; !notify || signal != want ||
				passToPeer != (i == 3) {
				t.Errorf("round %d, grant %d: %d, %v", round, i, signal, passToPeer)
			}
		}
		if signal, notify := tr.leaveToPeer("other", now); !notify || signal != LeaveToPeer || tr.leaveTarget != "other" ||
			tr.signalOnEntry(now) != LeaveToPeer {
			t.Error("the lock is not left to the peer")
		}
		tr.recordHeld(now) // the other process has taken the lock
		if tr.signalOnEntry(now) != TryNow {
			t.Error("a new waiter leaves the lock to a peer that has taken it")
		}
	}
	tr.grantToHead(0, now)
	tr.recordRelease(0, false, now)
	if signal, notify := tr.leaveToPeer("", now); !notify || signal != TryNow || tr.peerWaits || tr.signalOnEntry(now) != TryNow {
		t.Errorf("no peer waits: %d, %+v", signal, tr)
	}
}

// TestUnusedTurn checks that the wait for a process that does not take the lock is limited.
func TestUnusedTurn(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	tr.grantToHead(0, now)
	tr.peerWaits = true
	tr.recordRelease(0, false, now)
	tr.leaveToPeer("other", now)
	if tr.signalOnEntry(now.Add(maxLeaveTime-1)) != LeaveToPeer || tr.signalOnEntry(now.Add(maxLeaveTime)) != TryNow {
		t.Error("the time for the peer has another end")
	}
	if tr.grantToHead(0, now.Add(maxLeaveTime)) {
		t.Error("a question was asked after a peer did not take the lock")
	}
	if signal, passToPeer, _ := tr.recordRelease(0, false, now.Add(maxLeaveTime)); signal != TryNow || passToPeer {
		t.Errorf("the peer did not take the lock: %d", signal)
	}
	if tr.grantToHead(0, now.Add(maxLeaveTime+absencePause)) || !tr.grantToHead(0, now.Add(maxLeaveTime+absencePause+askPause)) {
		t.Error("no question is asked after the pause")
	}
}

// TestReturnedTurn checks that a question is due soon after another process has left the lock to
// this process, because that process had the lock.
func TestReturnedTurn(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	for range 3 {
		if !tr.grantToHead(0, now) {
			t.Error("no question was asked")
		}
		tr.peerWaits = true
		if signal, passToPeer, _ := tr.recordRelease(0, false, now); signal != LeaveToPeer || !passToPeer {
			t.Errorf("%d, %v", signal, passToPeer)
		}
		tr.leaveToPeer("other", now)
		now = now.Add(ms)
		tr.recordLockFromPeer(now)
	}
}

// TestEarlyLossOfTurn checks that the turn ends if another process is faster after a release, and
// that the next question is due soon.
func TestEarlyLossOfTurn(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	tr.grantToHead(9, now)
	tr.recordHeld(now) // a client of this process holds the lock
	if !tr.isHeldByOwnClient() || tr.grantCount != 1 {
		t.Errorf("the lock does not count as held by this process: %+v", tr)
	}
	tr.recordRelease(9, false, now)
	tr.recordHeld(now)
	if tr.isHeldByOwnClient() || tr.grantCount != 0 {
		t.Errorf("%+v", tr)
	}
	for range 3 {
		if !tr.grantToHead(0, now) {
			t.Error("the question is not asked each time after a peer had the lock")
		}
		now = now.Add(ms)
	}
}

// TestTurnLimit checks that a turn with many or slow waiters ends at its time limit.
func TestTurnLimit(t *testing.T) {
	for elapsed, want := range map[time.Duration]Signal{longestTurn: TryNow, longestTurn + ms: LeaveToPeer} {
		var tr turn
		now := time.Unix(1000, 0)
		tr.grantToHead(1000, now)
		tr.peerWaits = true
		if signal, _, _ := tr.recordRelease(1000, false, now.Add(elapsed)); signal != want {
			t.Errorf("after %v: %d", elapsed, signal)
		}
	}
}

// TestSecondRelease checks that a repeated report of the same release changes nothing.
func TestSecondRelease(t *testing.T) {
	var tr turn
	now := time.Unix(1000, 0)
	tr.grantToHead(0, now)
	tr.peerWaits = true
	if signal, _, notify := tr.recordRelease(0, false, now); !notify || signal != LeaveToPeer {
		t.Fatalf("%d", signal)
	}
	if signal, _, notify := tr.recordRelease(0, false, now); notify {
		t.Errorf("%d", signal)
	}
}
