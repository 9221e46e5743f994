package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// signalOf returns the signal for a ticket, or -1.
func signalOf(p *Ticket[string]) Signal {
	select {
	case c := <-p.Signals():
		return c
	default:
		return -1
	}
}

// TestOrder checks that waiters are served first come, first served. A waiter that leaves does not
// change the order.
func TestOrder(t *testing.T) {
	var q Queues[string]
	first, second, third := q.Enter("k", 0), q.Enter("k", 0), q.Enter("k", 0)
	if got := signalOf(first); got != TryNow {
		t.Errorf("the first: %d", got)
	}
	waits := func(key string) bool { is, _ := q.HasWaiter(key); return is }
	if !waits("k") || waits("other") || q.Len() != 3 {
		t.Errorf("%d wait", q.Len())
	}
	q.Leave(second, false)
	if signalOf(third) != -1 {
		t.Error("the third waiter got a signal")
	}
	q.Leave(first, true)
	if got := signalOf(third); got != TryLater {
		t.Errorf("after a grant: %d", got)
	}
	q.RecordRelease("k", -1)
	if got := signalOf(third); got != TryNow {
		t.Errorf("after the release: %d", got)
	}
	q.Leave(third, false)
	if waits("k") || q.Len() != 0 {
		t.Error("a queue remains")
	}
}

// TestReadersTryTogether checks which waiters try when the waiter ahead of them tries, or has got
// the lock.
func TestReadersTryTogether(t *testing.T) {
	var q Queues[string]
	const reader, writer = -1, 0
	first, second := q.Enter("k", reader), q.Enter("k", reader)
	blocking, third := q.Enter("k", writer), q.Enter("k", reader)
	want := func(p *Ticket[string], want Signal, when string) {
		t.Helper()
		if got := signalOf(p); got != want {
			t.Errorf("%s: signal %d, want %d", when, got, want)
		}
	}
	want(first, TryNow, "the head")
	want(second, -1, "before the head tries")
	q.beginTry(first)
	want(second, TryNow, "the head tries")
	q.beginTry(second)
	want(blocking, -1, "readers try")
	if q.endTry([]*Ticket[string]{second}, true) || !q.endTry([]*Ticket[string]{first}, false) {
		t.Error("the second waiter is the head")
	}
	if _, undecided := q.HasWaiter("k"); undecided {
		t.Error("a try of the second waiter counts")
	}
	q.beginTry(second)
	q.Leave(second, true)
	want(blocking, -1, "the second waiter got the lock")
	q.Leave(first, true)
	want(blocking, TryLater, "the readers got the lock")
	q.Leave(blocking, true)
	want(third, TryLater, "the writer got the lock")
	q.beginTry(third)
	late, slot := q.Enter("k", reader), q.Enter("k", 5)
	want(late, TryNow, "a reader behind one that tries")
	q.Leave(third, true)
	want(late, TryNow, "the reader before got the lock")
	q.beginTry(late)
	want(slot, -1, "a limited number may hold the lock")
	q.Leave(late, true)
	want(slot, TryNow, "there may be another slot")
}

// TestSlotsTryTogether checks that as many waiters for slots try together as slots are free.
func TestSlotsTryTogether(t *testing.T) {
	var q Queues[string]
	var tickets []*Ticket[string]
	for range 6 {
		tickets = append(tickets, q.Enter("k", 4))
	}
	wantTrying := func(want int, when string) {
		t.Helper()
		got := 0
		for _, p := range tickets {
			if signalOf(p) == TryNow {
				q.beginTry(p)
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d waiters try, want %d", when, got, want)
		}
	}
	refuse := func() {
		for _, p := range tickets {
			if q.endTry([]*Ticket[string]{p}, false) {
				q.recordHeld(p)
			}
		}
	}
	grant := func(freeSlots int) {
		tickets[0].freeSlots = freeSlots
		q.Leave(tickets[0], true)
		tickets = tickets[1:]
	}
	wantTrying(4, "no number is known")
	refuse()
	q.RecordRelease("k", 1)
	wantTrying(1, "one slot is free")
	grant(0)
	wantTrying(0, "the last slot was taken")
	q.RecordRelease("k", 3)
	wantTrying(3, "three slots are free")
	grant(2)
	grant(0)
	refuse()
	q.RecordRelease("k", -1)
	wantTrying(3, "the lock is free")
}

// TestReadersBehindSeveralKeys checks that readers do not try together with a waiter for several
// keys, before or behind it.
func TestReadersBehindSeveralKeys(t *testing.T) {
	var q Queues[string]
	first, several, last := q.Enter("k", -1), q.EnterAll([]string{"k", "l"}, 0), q.Enter("k", -1)
	if signalOf(first) != TryNow || signalOf(several[1]) != TryNow {
		t.Error("a head got no signal")
	}
	q.beginTry(first)
	if signalOf(several[0]) != -1 {
		t.Error("a waiter for several keys tries with a reader")
	}
	q.Leave(first, true)
	if signalOf(several[0]) != TryLater {
		t.Error("the waiter for several keys is not the head")
	}
	q.beginTry(several...)
	if signalOf(last) != -1 {
		t.Error("a reader tries with a waiter for several keys")
	}
	if !q.endTry(several, false) {
		t.Error("the waiter for several keys is not the head of its queues")
	}
	q.LeaveAll(several, true)
	if signalOf(last) != TryLater {
		t.Error("the reader is not the head")
	}
}

// fakePeers simulates other processes, which answer at once.
type fakePeers struct {
	alone bool
	// waitingPeer is the process that waits. leaveTargets holds the processes to which the lock was
	// left.
	waitingPeer                      string
	leaveTargets                     []string
	askCount, passCount, unmarkCount int
	marks                            []*fakeMark
	peerAlarms                       []*fakeAlarm
}

// fakeMark simulates a mark of this process.
type fakeMark struct {
	fakeAlarm
	putCount int
}

func (m *fakeMark) Put() { m.putCount++ }

func (o *fakePeers) IsAlone() bool { return o.alone }
func (o *fakePeers) WaiterMark(string) WaiterMark {
	alarm := &fakeMark{fakeAlarm: fakeAlarm{changes: make(chan struct{}, 1)}}
	o.marks = append(o.marks, alarm)
	return alarm
}

func (o *fakePeers) RemoveWaiterMark(_ string, sendNext func()) {
	if o.unmarkCount++; sendNext != nil {
		sendNext()
	}
}
func (o *fakePeers) AskForWaiters(_ string, onAnswer func(peerWaits bool)) {
	o.askCount++
	onAnswer(o.waitingPeer != "")
}
func (o *fakePeers) PassLock(_ string, onAnswer func(to string)) {
	if o.passCount++; o.waitingPeer != "" {
		o.leaveTargets = append(o.leaveTargets, o.waitingPeer)
	}
	onAnswer(o.waitingPeer)
}

func (o *fakePeers) WatchPeer(string, string) Alarm {
	alarm := &fakeAlarm{changes: make(chan struct{}, 1)}
	o.peerAlarms = append(o.peerAlarms, alarm)
	return alarm
}

// takeLock makes the head of a queue take the lock.
func takeLock(q *Queues[string], p *Ticket[string]) {
	q.beginTry(p)
	q.SendTake(p.key, callIfSet)
	q.Leave(p, true)
}

// TestLeaveToPeer checks that the waiters of one process hand a lock on. If another process waits,
// the releasing process leaves the lock to it once all waiters were served, until the lock is
// granted again.
func TestLeaveToPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{waitingPeer: "other"}
		q := Queues[string]{Peers: peers}
		first, second := q.Enter("k", 0), q.Enter("k", 0)
		takeLock(&q, first)
		third := q.Enter("k", 0)
		if !q.RecordRelease("k", -1) || signalOf(second) != TryNow || peers.askCount+peers.passCount != 0 {
			t.Error("the lock is not handed on within the turn")
		}
		takeLock(&q, second)
		if q.RecordRelease("k", -1) || signalOf(third) != LeaveToPeer || peers.askCount != 1 ||
			!slices.Equal(peers.leaveTargets, []string{"other"}) {
			t.Errorf("the turn continues after %d questions; left to %q", peers.askCount, peers.leaveTargets)
		}
		if q.RecordRelease("k", -1); signalOf(third) != -1 || peers.passCount != 1 {
			t.Error("a repeated release sent a signal")
		}
		if q.recordPeerDone(third); q.byKey["k"].turn.signalOnEntry(time.Now()) != TryNow {
			t.Error("a new waiter leaves the lock to a peer that is done")
		}
		takeLock(&q, third)
	})
}

// TestRepeatedLockWithoutPeer checks that a client that locks again and again is not delayed unless
// another process also wants the lock. Then both have their turns.
func TestRepeatedLockWithoutPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		q := Queues[string]{Peers: peers}
		lockAndRelease := func() Signal {
			p := q.Enter("k", 0)
			signal := signalOf(p)
			takeLock(&q, p)
			time.Sleep(ms)
			q.RecordRelease("k", -1)
			return signal
		}
		for range 1000 {
			if signal := lockAndRelease(); signal != TryNow {
				t.Fatalf("alone: %d", signal)
			}
		}
		if peers.askCount+peers.passCount > 1000*int(ms)/int(askPause)+1 {
			t.Errorf("%d and %d questions", peers.askCount, peers.passCount)
		}
		peers.waitingPeer = "other"
		leftCount := 0
		for range 2 * askPause / ms {
			if lockAndRelease() == LeaveToPeer {
				leftCount++
			}
		}
		if leftCount == 0 {
			t.Error("the lock is not left to another process")
		}
		if len(peers.marks)+peers.unmarkCount != 0 || q.Len() != 0 || q.LenOf("k") != 0 {
			t.Errorf("%d marks without a wait for a peer; %d wait", len(peers.marks), q.Len())
		}
	})
}

// TestMarks checks that a waiter for a lock of another process has a mark until it tries or no
// longer waits. A waiter for a lock of its own process has no mark.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		q := Queues[string]{Peers: peers}
		p, nextTicket := q.Enter("k", 0), q.Enter("k", 0)
		if !q.needsMark(p) {
			t.Error("the waiter needs no mark")
		}
		if takeLock(&q, p); peers.unmarkCount != 1 {
			t.Error("the mark remains after a take")
		}
		if q.needsMark(nextTicket) {
			t.Error("a waiter for a lock of its own process needs a mark")
		}
		q.RecordRelease("k", -1)
		if !q.needsMark(nextTicket) {
			t.Error("no mark is needed, although no client of this process has the lock")
		}
		if q.Leave(nextTicket, false); peers.unmarkCount != 2 {
			t.Error("the mark remains after Leave")
		}
	})
}

// TestOneQuestionPerTry checks that only the first take of a try removes the mark, and asks whether
// another process waits.
func TestOneQuestionPerTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		q := Queues[string]{Peers: peers}
		p := q.Enter("k", 0)
		takes := 0
		take := func(key string, unmarks, asks int) {
			t.Helper()
			q.SendTake(key, func(then func()) { takes++; callIfSet(then) })
			if peers.unmarkCount != unmarks || peers.askCount != asks {
				t.Errorf("unmarked %d times, want %d; asked %d times, want %d", peers.unmarkCount, unmarks, peers.askCount, asks)
			}
		}
		q.needsMark(p)
		take("k", 0, 0) // no try is under way
		q.beginTry(p)
		take("other", 0, 0)
		take("k", 1, 1)
		take("k", 1, 1)
		if takes != 4 {
			t.Errorf("%d takes were sent", takes)
		}
	})
}

// TestNoPeers checks that the head gets a signal to try at once if its process wants to leave the
// lock to another process, but no process waits.
func TestNoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{waitingPeer: "other"}
		q := Queues[string]{Peers: peers}
		takeLock(&q, q.Enter("k", 0))
		second := q.Enter("k", 0)
		signalOf(second)
		peers.waitingPeer = ""
		if q.RecordRelease("k", -1); signalOf(second) != TryNow || peers.passCount != 1 {
			t.Errorf("left %d times", peers.passCount)
		}
	})
}

// TestReleaseOfUnknownKey checks a release while this process does not know whether another process
// waits. This process leaves the lock to the other process if no client waits in this process.
// Otherwise the next client gets the lock, and this process asks whether another process waits.
func TestReleaseOfUnknownKey(t *testing.T) {
	for name, waiting := range map[string]bool{"no client waits": false, "a client waits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peers := &fakePeers{}
				q := Queues[string]{Peers: peers}
				takeLock(&q, q.Enter("k", 0))
				time.Sleep(askPause)
				peers.waitingPeer = "other"
				var next *Ticket[string]
				if waiting {
					next = q.Enter("k", 0)
					signalOf(next)
				}
				q.RecordRelease("k", -1)
				if waiting {
					if len(peers.leaveTargets) > 0 || signalOf(next) != TryNow {
						t.Error("the lock is left to a process that is not known to wait")
					}
					takeLock(&q, next)
					q.RecordRelease("k", -1)
				}
				if later := q.Enter("k", 0); len(peers.leaveTargets) != 1 || signalOf(later) != LeaveToPeer {
					t.Errorf("left to %q", peers.leaveTargets)
				}
			})
		})
	}
}

// TestEmptyQueues checks that Queues keeps a limited number of empty queues for a while.
func TestEmptyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queues[int]{MayKeepEmpty: func(key int) bool { return key >= 0 }}
		enterAndLeave := func(key int) { q.Leave(q.Enter(key, 0), true) }
		enterAndLeave(-1)
		if len(q.byKey) != 0 {
			t.Error("a queue that must not be kept is kept")
		}
		for key := range 2 * maxEmptyQueues {
			enterAndLeave(key)
			q.RecordRelease(key, -1)
		}
		if n := len(q.byKey); n > maxEmptyQueues || len(q.emptyQueues) > maxEmptyQueues {
			t.Errorf("%d are kept", n)
		}
		p := q.Enter(2*maxEmptyQueues-1, 0)
		time.Sleep(emptyQueueTime)
		enterAndLeave(0)
		if n := len(q.byKey); n != 2 {
			t.Errorf("%d are kept, want the last one and the one with a waiter", n)
		}
		q.Leave(p, false)
	})
}
