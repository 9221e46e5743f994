package queue

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// cueOf is the cue that a place has, or -1.
func cueOf(p *Place[string]) Cue {
	select {
	case c := <-p.Turn():
		return c
	default:
		return -1
	}
}

// TestOrder: first come, first served; a place that is left in between changes nothing for the others.
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

// fakeOthers are other processes, which answer when they are asked.
type fakeOthers struct {
	// next is the one that waits, left are those that it was left to; gone has them wait no more.
	next                    string
	left                    []string
	gone                    bool
	asked, marked, unmarked int
	alarms                  []*fakeAlarm
}

func (o *fakeOthers) Mark(_ string, marked func()) {
	o.marked++
	marked()
}
func (o *fakeOthers) Unmark(string)                            { o.unmarked++ }
func (o *fakeOthers) Ask(_ string, answered func(next string)) { o.asked++; answered(o.next) }
func (o *fakeOthers) Pass(_, to string, gone func()) {
	if o.left = append(o.left, to); o.gone {
		gone()
	}
}

func (o *fakeOthers) Passed(string) Alarm {
	one := &fakeAlarm{bell: make(chan struct{}, 1)}
	o.alarms = append(o.alarms, one)
	return one
}

// TestYield: those of one process hand a lock on; where others wait it is left to them once all were served, until it was granted again.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakeOthers{next: "other"}
		q := Queues[string]{Others: others}
		first, second := q.Enter("k"), q.Enter("k")
		q.Leave(first, true)
		third := q.Enter("k")
		if !q.Released("k") || cueOf(second) != TryNow || others.asked != 0 {
			t.Error("it is not handed on within the turn")
		}
		q.Leave(second, true)
		if q.Released("k") || cueOf(third) != Yield || others.asked != 1 || !slices.Equal(others.left, []string{"other"}) {
			t.Errorf("the turn goes on, after %d questions; left to %q", others.asked, others.left)
		}
		if q.Released("k"); cueOf(third) != -1 {
			t.Error("told of the same release again, the gap ends")
		}
		if q.askOthers("k"); cueOf(third) != Yield {
			t.Error("the gap ends although they still wait")
		}
		others.next = ""
		if q.askOthers("k"); cueOf(third) != LookNow {
			t.Error("it waits for others who have gone")
		}
		q.Leave(third, true)
		if q.Released("k"); q.Enter("k") == nil {
			t.Error("no place")
		}
	})
}

// TestAlone: who locks again and again by itself is not held up, unless others want the lock as well; then it has its turns.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakeOthers{}
		q := Queues[string]{Others: others}
		again := func() Cue {
			p := q.Enter("k")
			cue := cueOf(p)
			q.Leave(p, true)
			time.Sleep(ms)
			q.Released("k")
			return cue
		}
		for range 1000 {
			if cue := again(); cue != TryNow {
				t.Fatalf("alone: %d", cue)
			}
		}
		others.next = "other"
		yields := 0
		for range 2 * askPause / ms {
			if again() == Yield {
				yields++
			}
		}
		if yields == 0 {
			t.Error("it does not leave it to another")
		}
		if others.marked != 0 || q.Len() != 0 || q.LenOf("k") != 0 {
			t.Errorf("%d marks of one who waits for nobody; %d wait", others.marked, q.Len())
		}
	})
}

// TestMarks: who waits for others is known to them, until it has the lock or waits no longer; who waits for one of this process is not.
func TestMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakeOthers{}
		q := Queues[string]{Others: others}
		p, next := q.Enter("k"), q.Enter("k")
		q.mark(p, func() {})
		q.mark(p, func() {})
		if others.marked != 1 {
			t.Errorf("%d marks at once", others.marked)
		}
		time.Sleep(markPause)
		if q.mark(p, func() {}); others.marked != 2 {
			t.Errorf("%d marks", others.marked)
		}
		if q.Leave(p, true); others.unmarked != 1 {
			t.Error("it is still marked")
		}
		if q.mark(next, func() {}); others.marked != 2 {
			t.Error("marked, behind one of its own")
		}
		q.Released("k")
		q.mark(next, func() {})
		if q.Leave(next, false); others.unmarked != 2 {
			t.Error("one that has left is still marked")
		}
	})
}

// TestGone: a lock that is left to one who waits no more is taken at once.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := &fakeOthers{next: "other", gone: true}
		q := Queues[string]{Others: others}
		q.Leave(q.Enter("k"), true)
		time.Sleep(askPause)
		q.Leave(q.Enter("k"), true)
		second := q.Enter("k")
		cueOf(second)
		if q.Released("k"); cueOf(second) != TryNow || len(others.left) != 1 {
			t.Errorf("left to %q", others.left)
		}
	})
}

// TestReleasedBeforeTheAnswer: a lock that is released before it is known that others wait is left to them then, unless one of this process
// tries for it already; that one is the last.
func TestReleasedBeforeTheAnswer(t *testing.T) {
	for name, waiting := range map[string]bool{"nobody waits here": false, "one does": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				others := &fakeOthers{}
				q := Queues[string]{Others: others}
				q.Leave(q.Enter("k"), true)
				var next *Place[string]
				if waiting {
					next = q.Enter("k")
					cueOf(next)
				}
				q.Released("k")
				others.next = "other"
				q.askOthers("k")
				if waiting {
					if len(others.left) > 0 || cueOf(next) != TryNow {
						t.Error("it is left to others while one tries for it")
					}
					q.Leave(next, true)
					q.Released("k")
				}
				if again := q.Enter("k"); len(others.left) != 1 || cueOf(again) != Yield {
					t.Errorf("left to %q", others.left)
				}
			})
		})
	}
}

// TestParked: empty queues are kept for a while, and not too many.
func TestParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Queues[int]{Parks: func(key int) bool { return key >= 0 }}
		alone := func(key int) { q.Leave(q.Enter(key), true) }
		alone(-1)
		if len(q.byKey) != 0 {
			t.Error("kept one that must not be")
		}
		for key := range 2 * mostParked {
			alone(key)
			q.Released(key)
		}
		if n := len(q.byKey); n > mostParked || len(q.parked) > mostParked {
			t.Errorf("%d are kept", n)
		}
		p := q.Enter(2*mostParked - 1)
		time.Sleep(parkTime)
		alone(0)
		if n := len(q.byKey); n != 2 {
			t.Errorf("%d are kept, want the last one and that with one who waits", n)
		}
		q.Leave(p, false)
	})
}
