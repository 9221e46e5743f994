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
	waits := func(key string) bool { is, _ := q.Waits(key); return is }
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
	q.Released("k")
	if got := signalOf(third); got != TryNow {
		t.Errorf("after the release: %d", got)
	}
	q.Leave(third, false)
	if waits("k") || q.Len() != 0 {
		t.Error("a queue remains")
	}
}

// TestReadersTryTogether checks which waiters try when the waiter before them tries, or got the lock.
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
	if q.endTry(second, true) || !q.endTry(first, false) {
		t.Error("the second waiter is the head")
	}
	if _, undecided := q.Waits("k"); undecided {
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

// fakePeers simulates other processes, which answer at once.
type fakePeers struct {
	alone bool
	// waitingPeer is the process that waits. leftTo holds the processes to which the lock was left.
	waitingPeer           string
	leftTo                []string
	asks, passes, unmarks int
	marks                 []*fakeMark
	peerAlarms            []*fakeAlarm
}

// fakeMark simulates a mark of this process.
type fakeMark struct {
	fakeAlarm
	puts int
}

func (m *fakeMark) Put() { m.puts++ }

func (o *fakePeers) Alone() bool { return o.alone }
func (o *fakePeers) Mark(string) Mark {
	alarm := &fakeMark{fakeAlarm: fakeAlarm{changes: make(chan struct{}, 1)}}
	o.marks = append(o.marks, alarm)
	return alarm
}

func (o *fakePeers) Unmark(_ string, then func()) {
	if o.unmarks++; then != nil {
		then()
	}
}
func (o *fakePeers) AskIfWanted(_ string, onAnswer func(peerWaits bool)) {
	o.asks++
	onAnswer(o.waitingPeer != "")
}
func (o *fakePeers) PassLock(_ string, onAnswer func(to string)) {
	if o.passes++; o.waitingPeer != "" {
		o.leftTo = append(o.leftTo, o.waitingPeer)
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
		if !q.Released("k") || signalOf(second) != TryNow || peers.asks+peers.passes != 0 {
			t.Error("the lock is not handed on within the turn")
		}
		takeLock(&q, second)
		if q.Released("k") || signalOf(third) != LeaveToPeer || peers.asks != 1 ||
			!slices.Equal(peers.leftTo, []string{"other"}) {
			t.Errorf("the turn continues after %d questions; left to %q", peers.asks, peers.leftTo)
		}
		if q.Released("k"); signalOf(third) != -1 || peers.passes != 1 {
			t.Error("a repeated release sent a signal")
		}
		if q.peerDone(third); q.byKey["k"].turn.signalOnEntry(time.Now()) != TryNow {
			t.Error("a new waiter leaves the lock to a peer that is done")
		}
		takeLock(&q, third)
	})
}

// TestAlone checks that a client that locks again and again is not delayed unless another process
// also wants the lock. Then both have their turns.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		q := Queues[string]{Peers: peers}
		lockAndRelease := func() Signal {
			p := q.Enter("k", 0)
			signal := signalOf(p)
			takeLock(&q, p)
			time.Sleep(ms)
			q.Released("k")
			return signal
		}
		for range 1000 {
			if signal := lockAndRelease(); signal != TryNow {
				t.Fatalf("alone: %d", signal)
			}
		}
		if peers.asks+peers.passes > 1000*int(ms)/int(askPause)+1 {
			t.Errorf("%d and %d questions", peers.asks, peers.passes)
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
		if len(peers.marks)+peers.unmarks != 0 || q.Len() != 0 || q.LenOf("k") != 0 {
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
		p, next := q.Enter("k", 0), q.Enter("k", 0)
		if !q.needsMark(p) {
			t.Error("the waiter needs no mark")
		}
		if takeLock(&q, p); peers.unmarks != 1 {
			t.Error("the mark remains after a take")
		}
		if q.needsMark(next) {
			t.Error("a waiter for a lock of its own process needs a mark")
		}
		q.Released("k")
		if !q.needsMark(next) {
			t.Error("no mark is needed, although no client of this process has the lock")
		}
		if q.Leave(next, false); peers.unmarks != 2 {
			t.Error("the mark remains after Leave")
		}
	})
}

// TestOneQuestionPerTry checks that only the first take of a try removes the mark and asks the
// question.
func TestOneQuestionPerTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		q := Queues[string]{Peers: peers}
		p := q.Enter("k", 0)
		takes := 0
		take := func(key string, unmarks, asks int) {
			t.Helper()
			q.SendTake(key, func(then func()) { takes++; callIfSet(then) })
			if peers.unmarks != unmarks || peers.asks != asks {
				t.Errorf("unmarked %d times, want %d; asked %d times, want %d", peers.unmarks, unmarks, peers.asks, asks)
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
		if q.Released("k"); signalOf(second) != TryNow || peers.passes != 1 {
			t.Errorf("left %d times", peers.passes)
		}
	})
}

// TestReleasedUnknown checks a release while this process does not know whether another process
// waits. This process leaves the lock to the other process if no client waits in this process.
// Otherwise the next client gets the lock, and this process asks whether another process waits.
func TestReleasedUnknown(t *testing.T) {
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
				q.Released("k")
				if waiting {
					if len(peers.leftTo) > 0 || signalOf(next) != TryNow {
						t.Error("the lock is left to a process that is not known to wait")
					}
					takeLock(&q, next)
					q.Released("k")
				}
				if later := q.Enter("k", 0); len(peers.leftTo) != 1 || signalOf(later) != LeaveToPeer {
					t.Errorf("left to %q", peers.leftTo)
				}
			})
		})
	}
}

// TestParked checks that Queues keeps a limited number of empty queues for a while.
func TestParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queues[int]{MayPark: func(key int) bool { return key >= 0 }}
		enterAndLeave := func(key int) { q.Leave(q.Enter(key, 0), true) }
		enterAndLeave(-1)
		if len(q.byKey) != 0 {
			t.Error("a queue that may not be parked is kept")
		}
		for key := range 2 * maxParked {
			enterAndLeave(key)
			q.Released(key)
		}
		if n := len(q.byKey); n > maxParked || len(q.parked) > maxParked {
			t.Errorf("%d are kept", n)
		}
		p := q.Enter(2*maxParked-1, 0)
		time.Sleep(parkTime)
		enterAndLeave(0)
		if n := len(q.byKey); n != 2 {
			t.Errorf("%d are kept, want the last one and the one with a waiter", n)
		}
		q.Leave(p, false)
	})
}
