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
	if !q.Waits("k") || q.Waits("other") || q.Len() != 3 {
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
	if q.Waits("k") || q.Len() != 0 {
		t.Error("a queue is left")
	}
}

// TestYield: those of one process hand a lock on for a while; then other processes get a chance.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queues[string]
		first, second := q.Enter("k"), q.Enter("k")
		q.Leave(first, true)
		time.Sleep(longestStreak + time.Millisecond)
		q.Released("k")
		if got := cueOf(second); got != Yield {
			t.Errorf("after a long streak: %d", got)
		}
		q.Released("k")
		if got := cueOf(second); got != TryNow {
			t.Errorf("the streak began anew: %d", got)
		}
	})
}
