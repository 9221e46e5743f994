package meter

import (
	"context"
	"errors"
	"testing"
	"time"
)

// startWatch starts the watch of a new run.
func startWatch(t *testing.T, watchdog *Watchdog, limit, spentTime time.Duration) *Watch {
	t.Helper()
	w := &Watch{}
	w.Start(t.Context(), watchdog, limit, spentTime)
	return w
}

// waitForEnd waits until a watch has ended its run, and returns the cause.
func waitForEnd(t *testing.T, w *Watch) error {
	t.Helper()
	ctx, done := w.WaitContext()
	defer done()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		t.Fatal("the watch has not ended the run within a minute")
	}
	return nil
}

// TestWatchEndsARun checks that a run without charges ends when its time limit expires, when its
// context ends, and on End. The first cause counts.
func TestWatchEndsARun(t *testing.T) {
	cause := errors.New("the process stops")
	ctx, stop := context.WithCancelCause(t.Context())
	watchdog := &Watchdog{}
	timeWatch, contextWatch, endedWatch := startWatch(t, watchdog, 30*time.Millisecond, 0), &Watch{}, startWatch(t, watchdog, time.Hour, 0)
	if err := waitForEnd(t, timeWatch); !errors.Is(err, ErrTime) {
		t.Errorf("%v, want %v", err, ErrTime)
	}
	contextWatch.Start(ctx, watchdog, 0, 0)
	stop(cause)
	if err := waitForEnd(t, contextWatch); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	endedWatch.End(cause)
	endedWatch.End(ErrMemory)
	if err := waitForEnd(t, endedWatch); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	if w := startWatch(t, watchdog, time.Second, time.Second); !errors.Is(w.Err(), ErrTime) {
		t.Errorf("a run whose time was used before Start: %v", w.Err())
	}
	for _, w := range []*Watch{timeWatch, contextWatch, endedWatch} {
		w.Stop()
	}
}

// TestWatchRequestsCheckAfterSlice checks that after its time slice a run must let other runs
// continue, even if it was charged for no work. Then a new slice begins.
func TestWatchRequestsCheckAfterSlice(t *testing.T) {
	w := &Watch{watchdog: &Watchdog{}, ctx: t.Context(), limit: time.Hour}
	for range sliceTicks {
		if w.addTime(tick); w.isCheckRequested() {
			t.Errorf("requested after %d ticks", w.ticks)
		}
	}
	if w.addTime(tick); !w.isCheckRequested() {
		t.Errorf("not requested after %d ticks", w.ticks)
	}
	w.BeginSlice()
	if w.isCheckRequested() || w.ticks != 0 {
		t.Error("still requested after BeginSlice")
	}
	w.end(ErrTime)
	if w.BeginSlice(); !w.isCheckRequested() {
		t.Error("a run continues after its end")
	}
}

// TestWatchWhileProcessIsStopped checks that the time of a run grows by at most maxTick while the
// process is stopped.
func TestWatchWhileProcessIsStopped(t *testing.T) {
	watchdog := &Watchdog{}
	w := startWatch(t, watchdog, time.Second, 0)
	defer w.Stop()
	watchdog.mu.Lock()
	watchdog.lastTick = watchdog.lastTick.Add(-time.Hour)
	watchdog.mu.Unlock()
	for left, _ := w.Remaining(); left == time.Second; left, _ = w.Remaining() {
		time.Sleep(time.Millisecond)
	}
	if w.Err() != nil {
		t.Error(w.Err())
	}
}

// TestWatchdogWithoutRuns checks that the timer of a watchdog without runs stops.
func TestWatchdogWithoutRuns(t *testing.T) {
	watchdog := &Watchdog{}
	a, b := startWatch(t, watchdog, 0, 0), startWatch(t, watchdog, 0, 0)
	a.Stop()
	a.Stop()
	watchdog.mu.Lock()
	if len(watchdog.runs) != 1 || watchdog.runs[0] != b || b.index != 0 {
		t.Errorf("%+v", watchdog.runs)
	}
	watchdog.mu.Unlock()
	b.Stop()
	watchdog.onTick()
	watchdog.mu.Lock()
	defer watchdog.mu.Unlock()
	if watchdog.armed || len(watchdog.runs) != 0 {
		t.Errorf("armed %v for %d runs", watchdog.armed, len(watchdog.runs))
	}
}
