package meter

import (
	"context"
	"errors"
	"testing"
	"time"
)

// started is the watch of a run that begins.
func started(t *testing.T, dog *Watchdog, limit, spent time.Duration) *Watch {
	t.Helper()
	w := &Watch{}
	w.Start(t.Context(), dog, limit, spent)
	return w
}

// ended waits until a watch has ended its run, and returns why.
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

// A run ends when its time is over, when its context ends and when it is told to, whatever it is
// charged for; the first reason stands.
func TestWatchEndsARun(t *testing.T) {
	cause := errors.New("the process stops")
	ctx, stop := context.WithCancelCause(t.Context())
	dog := &Watchdog{}
	timed, followed, told := started(t, dog, 30*time.Millisecond, 0), &Watch{}, started(t, dog, time.Hour, 0)
	if err := ended(t, timed); !errors.Is(err, ErrTime) {
		t.Errorf("%v, want %v", err, ErrTime)
	}
	followed.Start(ctx, dog, 0, 0)
	stop(cause)
	if err := ended(t, followed); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	told.End(cause)
	told.End(ErrMemory)
	if err := ended(t, told); err != cause {
		t.Errorf("%v, want %v", err, cause)
	}
	if w := started(t, dog, time.Second, time.Second); !errors.Is(w.Err(), ErrTime) {
		t.Errorf("one whose time was spent by others: %v", w.Err())
	}
	for _, w := range []*Watch{timed, followed, told} {
		w.Stop()
	}
}

// A run that has used its share of time is told to let others run, also if it is charged for
// nothing; after that it has another one.
func TestWatchRaisesItsFlag(t *testing.T) {
	w := &Watch{dog: &Watchdog{}, ctx: t.Context(), limit: time.Hour}
	for range shareTicks {
		if w.look(tick); w.isRaised() {
			t.Errorf("raised after %d ticks", w.ticks)
		}
	}
	if w.look(tick); !w.isRaised() {
		t.Errorf("not raised after %d ticks", w.ticks)
	}
	w.Renew()
	if w.isRaised() || w.ticks != 0 {
		t.Error("still raised")
	}
	w.end(ErrTime)
	if w.Renew(); !w.isRaised() {
		t.Error("what ended goes on")
	}
}

// While a process stands still no time passes for its runs, but for one tick.
func TestWatchOfAStandstill(t *testing.T) {
	dog := &Watchdog{}
	w := started(t, dog, time.Second, 0)
	defer w.Stop()
	dog.mu.Lock()
	dog.looked = dog.looked.Add(-time.Hour)
	dog.mu.Unlock()
	for left, _ := w.Left(); left == time.Second; left, _ = w.Left() {
		time.Sleep(time.Millisecond)
	}
	if w.Err() != nil {
		t.Error(w.Err())
	}
}

// A watchdog without runs rests.
func TestWatchdogRests(t *testing.T) {
	dog := &Watchdog{}
	a, b := started(t, dog, 0, 0), started(t, dog, 0, 0)
	a.Stop()
	a.Stop()
	dog.mu.Lock()
	if len(dog.runs) != 1 || dog.runs[0] != b || b.index != 0 {
		t.Errorf("%+v", dog.runs)
	}
	dog.mu.Unlock()
	b.Stop()
	dog.look()
	dog.mu.Lock()
	defer dog.mu.Unlock()
	if dog.armed || len(dog.runs) != 0 {
		t.Errorf("armed %v for %d runs", dog.armed, len(dog.runs))
	}
}
