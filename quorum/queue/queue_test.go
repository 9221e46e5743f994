package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// cueOf returns the signal for a place, or -1.
func cueOf(p *Ticket[string]) Signal {
	select {
	case c := <-p.Turn():
		return c
	default:
		return -1
	}
}

// TestOrder: waiters are served first come, first served. A waiter that leaves does not change the
// order.
func TestOrder(t *testing.T) {
	var q Queues[string]
	first, second, third := q.Enter("k"), q.Enter("k"), q.Enter("k")
	if got := cueOf(first); got != TryNow {
		t.Errorf("the first: %d", got)
	}
	waits := func(key string) bool { does, _ := q.Waits(key); return does }
	if !waits("k") || waits("other") || q.Len() != 3 {
		t.Errorf("%d wait", q.Len())
	}
	q.Leave(second, false)
	if cueOf(third) != -1 {
		t.Error("the third goes first")
	}
	q.Leave(first, true)
	if got := cueOf(third); got != TryLater {
		t.Errorf("after a grant: %d", got)
	}
	q.Released("k")
	if got := cueOf(third); got != TryNow {
		t.Errorf("after the release: %d", got)
	}
	q.Leave(third, false)
	if waits("k") || q.Len() != 0 {
		t.Error("a queue is left")
	}
}

// fakePeers simulates other processes, which answer at once.
type fakePeers struct {
	alone bool
	// next is the process that waits. left holds the processes to which the lock was left.
	next                    string
	left                    []string
	asked, passed, unmarked int
	marks                   []*fakeMark
	lefts                   []*fakeAlarm
}

// fakeMark is a mark of this process.
type fakeMark struct {
	fakeAlarm
	puts int
}

func (m *fakeMark) Put() { m.puts++ }

func (o *fakePeers) Alone() bool { return o.alone }
func (o *fakePeers) Mark(string) Mark {
	one := &fakeMark{fakeAlarm: fakeAlarm{bell: make(chan struct{}, 1)}}
	o.marks = append(o.marks, one)
	return one
}

func (o *fakePeers) Unmark(_ string, and func()) {
	if o.unmarked++; and != nil {
		and()
	}
}
func (o *fakePeers) Ask(_ string, answered func(wanted bool)) { o.asked++; answered(o.next != "") }
func (o *fakePeers) Pass(_ string, answered func(to string)) {
	if o.passed++; o.next != "" {
		o.left = append(o.left, o.next)
	}
	answered(o.next)
}

func (o *fakePeers) WatchPeer(string, string) Alarm {
	one := &fakeAlarm{bell: make(chan struct{}, 1)}
	o.lefts = append(o.lefts, one)
	return one
}

// takes makes the head of a queue take the lock.
func takes(q *Queues[string], p *Ticket[string]) {
	q.beginTry(p)
	q.Taking(p.key, callIfSet)
	q.Leave(p, true)
}

// TestYield: the waiters of one process hand a lock on. If another process waits, the lock is left
// to it once all were served, until it is granted again.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{next: "other"}
		q := Queues[string]{Peers: others}
		first, second := q.Enter("k"), q.Enter("k")
		takes(&q, first)
		third := q.Enter("k")
		if !q.Released("k") || cueOf(second) != TryNow || others.asked+others.passed != 0 {
			t.Error("it is not handed on within the turn")
		}
		takes(&q, second)
		if q.Released("k") || cueOf(third) != LeaveToPeer || others.asked != 1 ||
			!slices.Equal(others.left, []string{"other"}) {
			t.Errorf("the turn goes on, after %d questions; left to %q", others.asked, others.left)
		}
		if q.Released("k"); cueOf(third) != -1 || others.passed != 1 {
			t.Error("told of the same release again, the gap ends")
		}
		if q.peerDone(third); q.byKey["k"].turn.signalOnEntry(time.Now()) != TryNow {
			t.Error("it waits for others who have gone")
		}
		takes(&q, third)
	})
}

// TestAlone: a client that locks again and again is not delayed unless another process also wants
// the lock. Then both have their turns.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{}
		q := Queues[string]{Peers: others}
		again := func() Signal {
			p := q.Enter("k")
			cue := cueOf(p)
			takes(&q, p)
			time.Sleep(ms)
			q.Released("k")
			return cue
		}
		for range 1000 {
			if cue := again(); cue != TryNow {
				t.Fatalf("alone: %d", cue)
			}
		}
		if others.asked+others.passed > 1000*int(ms)/int(askPause)+1 {
			t.Errorf("%d and %d questions", others.asked, others.passed)
		}
		others.next = "other"
		yields := 0
		for range 2 * askPause / ms {
			if again() == LeaveToPeer {
				yields++
			}
		}
		if yields == 0 {
			t.Error("it does not leave it to another")
		}
		if len(others.marks)+others.unmarked != 0 || q.Len() != 0 || q.LenOf("k") != 0 {
			t.Errorf("%d marks of one who waits for nobody; %d wait", len(others.marks), q.Len())
		}
	})
}

// TestMarks: a waiter for a lock of another process has a mark until it tries or no longer waits. A
// waiter for a lock of its own process has none.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{}
		q := Queues[string]{Peers: others}
		p, next := q.Enter("k"), q.Enter("k")
		if !q.needsMark(p) {
			t.Error("it is not known to others")
		}
		if takes(&q, p); others.unmarked != 1 {
			t.Error("it is still marked")
		}
		if q.needsMark(next) {
			t.Error("marked, behind one of its own")
		}
		q.Released("k")
		if !q.needsMark(next) {
			t.Error("it is not known to others, although nobody here has the lock")
		}
		if q.Leave(next, false); others.unmarked != 2 {
			t.Error("one that has left is still marked")
		}
	})
}

// TestOneQuestionATry: only the first take of a try removes the mark and asks the question.
func TestOneQuestionATry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{}
		q := Queues[string]{Peers: others}
		p := q.Enter("k")
		sent := 0
		take := func(key string, unmarked, asked int) {
			t.Helper()
			q.Taking(key, func(and func()) { sent++; callIfSet(and) })
			if others.unmarked != unmarked || others.asked != asked {
				t.Errorf("unmarked %d times, want %d; asked %d times, want %d", others.unmarked, unmarked, others.asked, asked)
			}
		}
		q.needsMark(p)
		take("k", 0, 0) // no try is under way
		q.beginTry(p)
		take("other", 0, 0)
		take("k", 1, 1)
		take("k", 1, 1)
		if sent != 4 {
			t.Errorf("%d takes were sent", sent)
		}
	})
}

// TestNoPeers: a lock that is to be left to another process is taken at once if no process
// waits.
func TestNoPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakePeers{next: "other"}
		q := Queues[string]{Peers: others}
		takes(&q, q.Enter("k"))
		second := q.Enter("k")
		cueOf(second)
		others.next = ""
		if q.Released("k"); cueOf(second) != TryNow || others.passed != 1 {
			t.Errorf("left %d times", others.passed)
		}
	})
}

// TestReleasedUnknown: if it is unknown whether another process waits, the lock is left to it if no
// client waits in this process. Otherwise the next client gets it, and the question is asked.
func TestReleasedUnknown(t *testing.T) {
	for name, waiting := range map[string]bool{"nobody waits here": false, "one does": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				others := &fakePeers{}
				q := Queues[string]{Peers: others}
				takes(&q, q.Enter("k"))
				time.Sleep(askPause)
				others.next = "other"
				var next *Ticket[string]
				if waiting {
					next = q.Enter("k")
					cueOf(next)
				}
				q.Released("k")
				if waiting {
					if len(others.left) > 0 || cueOf(next) != TryNow {
						t.Error("it is left to others, of whom nothing is known")
					}
					takes(&q, next)
					q.Released("k")
				}
				if again := q.Enter("k"); len(others.left) != 1 || cueOf(again) != LeaveToPeer {
					t.Errorf("left to %q", others.left)
				}
			})
		})
	}
}

// TestParked: empty queues are kept for a while, in a limited number.
func TestParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queues[int]{Parks: func(key int) bool { return key >= 0 }}
		alone := func(key int) { q.Leave(q.Enter(key), true) }
		alone(-1)
		if len(q.byKey) != 0 {
			t.Error("kept one that must not be")
		}
		for key := range 2 * maxParked {
			alone(key)
			q.Released(key)
		}
		if n := len(q.byKey); n > maxParked || len(q.parked) > maxParked {
			t.Errorf("%d are kept", n)
		}
		p := q.Enter(2*maxParked - 1)
		time.Sleep(parkTime)
		alone(0)
		if n := len(q.byKey); n != 2 {
			t.Errorf("%d are kept, want the last one and that with one who waits", n)
		}
		q.Leave(p, false)
	})
}
