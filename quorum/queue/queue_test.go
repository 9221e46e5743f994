package queue

import (
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

// TestYield: those of one process hand a lock on for a while; then other processes get a chance, until it is granted again.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues[string]
		first, second, third := q.Enter("k"), q.Enter("k"), q.Enter("k")
		q.Leave(first, true)
		time.Sleep(longestStreak + time.Millisecond)
		q.Released("k")
		if got := cueOf(second); got != Yield {
			t.Errorf("after a long streak: %d", got)
		}
		q.Released("k")
		if got := cueOf(second); got != -1 {
			t.Errorf("told of the same release again, the gap ends: %d", got)
		}
		q.Leave(second, true)
		q.Released("k")
		if got := cueOf(third); got != TryNow {
			t.Errorf("the streak began anew: %d", got)
		}
	})
}

// TestAlone: who locks again and again by itself is not held up, unless others want the lock as well; then it has its turns.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues[string]
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
		p := q.Enter("k")
		q.lost(p, q.releasesOf(p)) // another was quicker
		q.Leave(p, true)
		q.Released("k")
		if cue := again(); cue != Yield {
			t.Errorf("with another: %d", cue)
		}
		if cue := again(); cue != TryNow {
			t.Errorf("nobody wanted it: %d", cue)
		}
		if waits, _ := q.Waits("k"); waits || q.Len() != 0 || q.LenOf("k") != 0 {
			t.Error("somebody waits")
		}
	})
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
