package master

import (
	"testing"
	"time"
)

func TestWaiting(t *testing.T) {
	now := time.Now()
	w := newWaiting(100 * time.Millisecond)
	w.now = func() time.Time { return now }
	want := func(what string, ms time.Duration) {
		t.Helper()
		if got := w.time().Round(time.Millisecond); got != ms*time.Millisecond {
			t.Errorf("%s: waits for %v, want %d ms", what, got, ms)
		}
	}
	want("at first", 100)
	w.answered(time.Millisecond)
	want("after a quick answer", 100)
	w.answered(50 * time.Millisecond)
	want("after a slow answer", 200)
	now = now.Add(patienceHalf)
	want("a while after that", 150)
	w.missed()
	want("after none", 300)
	w.missed()
	want("after none again", 500)
	w.missed()
	want("at most", 500)
	now = now.Add(time.Hour)
	want("long after", 100)
}
