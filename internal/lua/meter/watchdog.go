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
	// sliceTicks is the maximum length of a slice in ticks, for any amount of charged work. It is
	// longer than the usual wait of a short run for a processor.
	sliceTicks = 5
	// maxTick limits the time that one check counts, because no run uses the time while the whole
	// process is stopped.
	maxTick = 50 * time.Millisecond
)

// Watchdog counts the time of runs. It ends a run when the run's time limit expires, when the run's
// context ends, and on [Watch.End] and [Watch.EndAfter]. One timer serves all runs, and stops when
// no run is left. A timer for each run would cost a short run a tenth of its time. The zero value
// is ready to use, and safe for concurrent use.
type Watchdog struct {
	mu       sync.Mutex
	runs     []*Watch
	timer    *time.Timer // nil before the first run
	armed    bool
	lastTick time.Time
}

// Watch watches one run or one compilation. A nil Watch in Limits never ends a run.
type Watch struct {
	// minFuel is the fuel below which the run's meter calls check: zero, or more than any fuel if
	// the run must end or pause. So a charge costs only one comparison.
	minFuel atomic.Int64

	watchdog *Watchdog
	limit    time.Duration

	// watchdog.mu guards the following fields.
	ctx        context.Context
	index      int // in watchdog.runs; negative: the watch has stopped
	spentTime  time.Duration
	grace      graceLimit
	ticks      int // since the run began, or since its last BeginSlice
	cause      error
	cancelWait context.CancelCauseFunc // ends the wait of the run; nil while it does not wait
}

// Start makes the watchdog watch a run with a time limit. spentTime is the time that the run has
// already used. A limit of zero or less means no limit. A Watch can start only once.
func (w *Watch) Start(ctx context.Context, d *Watchdog, limit, spentTime time.Duration) {
	w.watchdog, w.limit = d, limit
	d.mu.Lock()
	defer d.mu.Unlock()
	w.ctx, w.spentTime = ctx, spentTime
	w.index = len(d.runs)
	d.runs = append(d.runs, w)
	if !d.armed {
		d.arm()
	}
	if ctx.Err() != nil || w.isTimeLimitReached() {
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
	elapsed := min(time.Since(d.lastTick), maxTick)
	for _, w := range d.runs {
		w.addTime(elapsed)
	}
	d.arm()
}

// isTimeLimitReached reports whether the run has spent its time limit. The caller holds
// watchdog.mu.
func (w *Watch) isTimeLimitReached() bool { return w.limit > 0 && w.spentTime >= w.limit }

// addTime adds to the time of a run, and ends the run or its slice if needed. The caller holds
// watchdog.mu.
func (w *Watch) addTime(elapsed time.Duration) {
	w.spentTime += elapsed
	w.ticks++
	switch {
	case w.ctx.Err() != nil:
		w.end(context.Cause(w.ctx))
	case w.grace.isReached(w.spentTime):
		w.end(w.grace.cause)
	case w.isTimeLimitReached():
		w.end(fmt.Errorf("%w %v", ErrTime, w.limit))
	case w.ticks > sliceTicks:
		w.requestCheck()
	}
}

// requestCheck makes the run's meter call check at the next charge.
func (w *Watch) requestCheck() { w.minFuel.Store(math.MaxInt64) }

// isCheckRequested reports whether the run's meter calls check at the next charge.
func (w *Watch) isCheckRequested() bool { return w.minFuel.Load() != 0 }

// end ends the run; the first cause counts. The caller holds watchdog.mu.
func (w *Watch) end(cause error) {
	if w.cause == nil {
		w.cause = cause
	}
	if w.cancelWait != nil {
		w.cancelWait(w.cause)
	}
	w.requestCheck()
}

// End ends the run, unless the run is ending for another cause.
func (w *Watch) End(cause error) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	w.end(cause)
}

// EndAfter ends the run after it has spent the time d since an event, unless the run ends earlier.
// The watchdog calls happened at each tick until happened returns true. happened must not block.
func (w *Watch) EndAfter(happened func() bool, d time.Duration, cause error) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	w.grace = graceLimit{happened: happened, limit: d, cause: cause}
}

// graceLimit limits the time that a run may spend after an event.
type graceLimit struct {
	happened  func() bool // nil if there is no such event
	limit     time.Duration
	eventTime time.Duration // the time that the run had spent at the event; zero before the event
	cause     error
}

// isReached reports whether the run must end. spentTime is the time that the run has spent.
func (l *graceLimit) isReached(spentTime time.Duration) bool {
	if l.eventTime == 0 && l.happened != nil && l.happened() {
		l.eventTime = spentTime
	}
	return l.eventTime > 0 && spentTime >= l.eventTime+l.limit
}

// Err returns the cause for which the run must end, or nil.
func (w *Watch) Err() error {
	if !w.isCheckRequested() {
		return nil
	}
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	return w.cause
}

// BeginSlice begins a new slice of the run, after other runs could continue.
func (w *Watch) BeginSlice() {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	w.ticks = 0
	if w.cause == nil {
		w.minFuel.Store(0)
	}
}

// WaitContext returns a context for a wait of the run. The context ends when the run must end. The
// caller calls done after the wait.
func (w *Watch) WaitContext() (ctx context.Context, done func()) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	ctx, cancel := context.WithCancelCause(w.ctx)
	if w.cancelWait = cancel; w.cause != nil {
		cancel(w.cause)
	}
	return ctx, func() {
		w.watchdog.mu.Lock()
		defer w.watchdog.mu.Unlock()
		w.cancelWait = nil
		cancel(nil)
	}
}

// Remaining returns the remaining time of the run. ok is false if the run has no time limit.
func (w *Watch) Remaining() (remaining time.Duration, ok bool) {
	w.watchdog.mu.Lock()
	defer w.watchdog.mu.Unlock()
	return w.limit - w.spentTime, w.limit > 0
}

// Stop ends the watch, and returns the time that the run has spent.
func (w *Watch) Stop() time.Duration {
	d := w.watchdog
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.index < 0 {
		return w.spentTime
	}
	last := d.runs[len(d.runs)-1]
	d.runs[w.index], last.index = last, w.index
	d.runs[len(d.runs)-1] = nil
	d.runs, w.index = d.runs[:len(d.runs)-1], -1
	return w.spentTime
}
