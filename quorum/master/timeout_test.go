package master

import (
	"testing"
	"time"
)

func TestAdaptiveTimeout(t *testing.T) {
	now := time.Now()
	w := newAdaptiveTimeout(100 * time.Millisecond)
	w.now = func() time.Time { return now }
	want := func(step string, ms time.Duration) {
		t.Helper()
		if got := w.current().Round(time.Millisecond); got != ms*time.Millisecond {
			t.Errorf("%s: waits for %v, want %d ms", step, got, ms)
		}
	}
	want("at first", 100)
	w.observe(time.Millisecond)
	want("after a quick answer", 100)
	w.observe(50 * time.Millisecond)
	want("after a slow answer", 200)
	now = now.Add(extraHalfLife)
	want("a while after that", 150)
	w.observeTimeout()
	want("after a timeout", 300)
	w.observeTimeout()
	want("after another timeout", 500)
	w.observeTimeout()
	want("at most", 500)
	now = now.Add(time.Hour)
	want("long after", 100)
}
