package meter

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tick is the interval at which a watchdog checks its runs.
	tick = 10 * time.Millisecond
	// shareTicks is the length of a slice in ticks, whatever work the run was charged for. It is
	// longer than a short run has to wait for a processor.
	shareTicks = 5
	// longestTick limits the time that one check counts: if the whole process was stopped, no run
	// used that time.
	longestTick = 50 * time.Millisecond
)

// Watchdog counts the time of runs. It ends a run when its time is up, when its context ends, and
// on [Watch.End]. One timer serves all runs, and stops if there are none: a timer for each run
// would cost a short run a tenth of its time. The zero value is ready to use, and safe for
// concurrent use.
type Watchdog struct {
	mu       sync.Mutex
	runs     []*Watch
	timer    *time.Timer // nil before the first run
	armed    bool
	lastTick time.Time
}

// Watch watches one run or one compilation. A nil Watch in Limits never ends a run.
type Watch struct {
	// floor is the fuel below which the run's meter calls check. It is zero, or above any fuel if
	// the run must end or pause. So a charge costs only one comparison.
	floor atomic.Int64

	watchdog *Watchdog
	limit    time.Duration

	// watchdog.mu guards the following fields.
	ctx        context.Context
	index      int // in watchdog.runs; negative: no longer watched
	spent      time.Duration
	ticks      int // since the run began, or since its last Renew
	cause      error
	cancelWait context.CancelCauseFunc // ends the wait of the run; nil while it does not wait
}

// Start makes the watchdog watch a run with a time limit, of which spent has passed already. A
// limit of zero or less means no limit. A watch is started once.
func (w *Watch) Start(ctx context.Context, d *Watchdog, limit, spent time.Duration) {
	w.watchdog, w.limit = d, limit
	d.mu.Lock()
	defer d.mu.Unlock()
	w.ctx, w.spent = ctx, spent
	w.index = len(d.runs)
	d.runs = append(d.runs, w)
	if !d.armed {
		d.arm()
	}
	if ctx.Err() != nil || w.isOver() {
		w.addTime(0)
	}
}

// arm starts the timer for the next tick. The caller holds mu.
func (d *Watchdog) arm() {
	d.armed, d.lastTick = true, time.Now()
	if d.timer == nil {
		d.timer = time.AfterFunc(tick, d.onTick)
		return
	}
	d.timer.Reset(tick)
}

// onTick counts a tick for each run. The timer calls it.
func (d *Watchdog) onTick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed = len(d.runs) > 0; !d.armed {
		return
	}
	took := min(time.Since(d.lastTick), longestTick)
	for _, w := range d.runs {
		w.addTime(took)
	}
	d.arm()
}

// isOver reports whether the run's time is up. The caller holds watchdog.mu.
func (w *Watch) isOver() bool { return w.limit > 0 && w.spent >= w.limit }

// addTime adds to the time of a run, and ends the run or its slice if needed. The caller holds
// watchdog.mu.
func (w *Watch) addTime(took time.Duration) {
	w.spent += took
	w.ticks++
	switch {
	case w.ctx.Err() != nil:
		w.end(context.Cause(w.ctx))
	case w.isOver():
		w.end(fmt.Errorf("%w %v", ErrTime, w.limit))
	case w.ticks > shareTicks:
		w.raise()
	}
}

// raise makes the run's meter call check at the next charge.
func (w *Watch) raise() { w.floor.Store(math.MaxInt64) }

// isRaised reports whether the run's meter calls check at the next charge.
func (w *Watch) isRaised() bool { return w.floor.Load() != 0 }

// end ends the run; the first cause counts. The caller holds watchdog.mu.
func (w *Watch) end(cause error) {
	if w.cause == nil {
		w.cause = cause
	}
	if w.cancelWait != nil {
		w.cancelWait(w.cause)
	}
	w.raise()
}

// End ends the run, unless the run is ending for another cause.
func (w *Watch) End(cause error) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	w.end(cause)
}

// Err returns the cause for which the run must end, or nil.
func (w *Watch) Err() error {
	if !w.isRaised() {
		return nil
	}
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	return w.cause
}

// Renew begins a new slice of the run, after other runs had their turn.
func (w *Watch) Renew() {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	w.ticks = 0
	if w.cause == nil {
		w.floor.Store(0)
	}
}

// Wait returns a context for a wait of the run, which ends when the run ends. The caller calls done
// after the wait.
func (w *Watch) Wait() (ctx context.Context, done func()) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	ctx, wake := context.WithCancelCause(w.ctx)
	if w.cancelWait = wake; w.cause != nil {
		wake(w.cause)
	}
	return ctx, func() {
		w.watchdog.mu.Lock()
		defer w.watchdog.mu.Unlock()
		w.cancelWait = nil
		wake(nil)
	}
}

// Left returns the remaining time of the run; ok is false if it has no limit.
func (w *Watch) Left() (left time.Duration, ok bool) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	return w.limit - w.spent, w.limit > 0
}

// Stop ends the watch, and returns the time that the run has spent.
func (w *Watch) Stop() time.Duration {
	d := w.watchdog
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.index < 0 {
		return w.spent
	}
	last := d.runs[len(d.runs)-1]
	d.runs[w.index], last.index = last, w.index
	d.runs[len(d.runs)-1] = nil
	d.runs, w.index = d.runs[:len(d.runs)-1], -1
	return w.spent
}
