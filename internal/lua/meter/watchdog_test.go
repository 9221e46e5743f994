package meter

import (
	"context"
	"errors"
	"testing"
	"time"
)

// started returns the watch of a new run.
func started(t *testing.T, watchdog *Watchdog, limit, spent time.Duration) *Watch {
	t.Helper()
	w := &Watch{}
	w.Start(t.Context(), watchdog, limit, spent)
	return w
}

// ended waits until a watch has ended its run, and returns the cause.
func ended(t *testing.T, w *Watch) error {
	t.Helper()
	ctx, done := w.Wait()
	defer done()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		t.Fatal("nothing ends it")
	}
	return nil
}

// TestWatchEndsARun: a run ends when its time is up, when its context ends, and on End, whatever
// work it is charged for. The first cause counts.
func TestWatchEndsARun(t *testing.T) {
	cause := errors.New("the process stops")
	ctx, stop := context.WithCancelCause(t.Context())
	watchdog := &Watchdog{}
	timed, followed, told := started(t, watchdog, 30*time.Millisecond, 0), &Watch{}, started(t, watchdog, time.Hour, 0)
	if err := ended(t, timed); !errors.Is(err, ErrTime) {
		t.Errorf("%v, want %v", err, ErrTime)
	}
	followed.Start(ctx, watchdog, 0, 0)
	stop(cause)
	if err := ended(t, followed); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	told.End(cause)
	told.End(ErrMemory)
	if err := ended(t, told); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	if w := started(t, watchdog, time.Second, time.Second); !errors.Is(w.Err(), ErrTime) {
		t.Errorf("one whose time was spent by others: %v", w.Err())
	}
	for _, w := range []*Watch{timed, followed, told} {
		w.Stop()
	}
}

// TestWatchRaisesItsFlag: after its time slice, a run must let other runs continue, even if it was
// charged for no work. Then a new slice begins.
func TestWatchRaisesItsFlag(t *testing.T) {
	w := &Watch{watchdog: &Watchdog{}, ctx: t.Context(), limit: time.Hour}
	for range shareTicks {
		if w.addTime(tick); w.isRaised() {
			t.Errorf("raised after %d ticks", w.ticks)
		}
	}
	if w.addTime(tick); !w.isRaised() {
		t.Errorf("not raised after %d ticks", w.ticks)
	}
	w.Renew()
	if w.isRaised() || w.ticks != 0 {
		t.Error("still raised")
	}
	w.end(ErrTime)
	if w.Renew(); !w.isRaised() {
		t.Error("a run continues after its end")
	}
}

// TestWatchOfAStandstill: while the process is stopped, only one tick passes for its runs.
func TestWatchOfAStandstill(t *testing.T) {
	watchdog := &Watchdog{}
	w := started(t, watchdog, time.Second, 0)
	defer w.Stop()
	watchdog.mu.Lock()
	watchdog.lastTick = watchdog.lastTick.Add(-time.Hour)
	watchdog.mu.Unlock()
	for left, _ := w.Left(); left == time.Second; left, _ = w.Left() {
		time.Sleep(time.Millisecond)
	}
	if w.Err() != nil {
		t.Error(w.Err())
	}
}

// TestWatchdogRests: a watchdog without runs has no timer.
func TestWatchdogRests(t *testing.T) {
	watchdog := &Watchdog{}
	a, b := started(t, watchdog, 0, 0), started(t, watchdog, 0, 0)
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
