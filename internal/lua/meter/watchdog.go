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
	// tick is how often a watchdog looks at the runs that it watches.
	tick = 10 * time.Millisecond
	// shareTicks is how many ticks a run has before it must let others run, whatever it was charged
	// for: more than the machine keeps a short run waiting for a processor.
	shareTicks = 5
	// longestTick is how much time a look counts at most: if the whole process stood still, no run
	// used that time.
	longestTick = 50 * time.Millisecond
)

// Watchdog counts the time of runs, and ends them from outside: when their time is over, when their
// context ends, and when they are told to end. One timer serves all runs, and rests while there is
// none: a timer for each would cost a short run a tenth of its time. The zero value is ready for
// use, and safe for concurrent use.
type Watchdog struct {
	mu     sync.Mutex
	runs   []*Watch
	timer  *time.Timer // nil before the first run
	armed  bool
	looked time.Time
}

// Watch is one run, or one compilation, as its watchdog sees it. A nil Watch never ends one.
type Watch struct {
	// floor is the fuel below which the run's meter looks up. It is zero, or raised above all fuel
	// if the run must stop, or let others run: so that a charge costs one comparison.
	floor atomic.Int64

	dog   *Watchdog
	limit time.Duration

	// Of dog.mu.
	ctx   context.Context
	index int // in dog.runs; negative: it is not watched any more
	spent time.Duration
	ticks int // since the run began, or was last renewed
	cause error
	wake  context.CancelCauseFunc // ends the wait of the run; nil while it does not wait
}

// Start has the watchdog watch a run that has a limit of time, of which others spent something. A
// limit that is not positive is none. A watch is started once.
func (w *Watch) Start(ctx context.Context, d *Watchdog, limit, spent time.Duration) {
	w.dog, w.limit = d, limit
	d.mu.Lock()
	defer d.mu.Unlock()
	w.ctx, w.spent = ctx, spent
	w.index = len(d.runs)
	d.runs = append(d.runs, w)
	if !d.armed {
		d.arm()
	}
	if ctx.Err() != nil || w.isOver() {
		w.look(0)
	}
}

// arm has the watchdog look after a tick. It is called with mu held.
func (d *Watchdog) arm() {
	d.armed, d.looked = true, time.Now()
	if d.timer == nil {
		d.timer = time.AfterFunc(tick, d.look)
		return
	}
	d.timer.Reset(tick)
}

// look counts a tick for each run.
func (d *Watchdog) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed = len(d.runs) > 0; !d.armed {
		return
	}
	took := min(time.Since(d.looked), longestTick)
	for _, w := range d.runs {
		w.look(took)
	}
	d.arm()
}

// isOver reports whether the run's time is over. It is called with dog.mu held.
func (w *Watch) isOver() bool { return w.limit > 0 && w.spent >= w.limit }

// look counts time for a run, and ends it if it must. It is called with dog.mu held.
func (w *Watch) look(took time.Duration) {
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

// raise has the run's meter look up at the next charge.
func (w *Watch) raise() { w.floor.Store(math.MaxInt64) }

// isRaised reports whether the run's meter is about to look up.
func (w *Watch) isRaised() bool { return w.floor.Load() != 0 }

// end is called with dog.mu held.
func (w *Watch) end(cause error) {
	if w.cause == nil {
		w.cause = cause
	}
	if w.wake != nil {
		w.wake(w.cause)
	}
	w.raise()
}

// End ends the run for a reason, unless it ends for another one already.
func (w *Watch) End(cause error) {
	w.dog.mu.Lock()
	defer w.dog.mu.Unlock()
	w.end(cause)
}

// Err returns why the run ends, or nil.
func (w *Watch) Err() error {
	if !w.isRaised() {
		return nil
	}
	w.dog.mu.Lock()
	defer w.dog.mu.Unlock()
	return w.cause
}

// Renew begins a new slice of the run, since it has just let others run.
func (w *Watch) Renew() {
	w.dog.mu.Lock()
	defer w.dog.mu.Unlock()
	w.ticks = 0
	if w.cause == nil {
		w.floor.Store(0)
	}
}

// Wait returns a context for a wait of the run, which ends when the run does. done ends the wait.
func (w *Watch) Wait() (ctx context.Context, done func()) {
	w.dog.mu.Lock()
	defer w.dog.mu.Unlock()
	ctx, wake := context.WithCancelCause(w.ctx)
	if w.wake = wake; w.cause != nil {
		wake(w.cause)
	}
	return ctx, func() {
		w.dog.mu.Lock()
		defer w.dog.mu.Unlock()
		w.wake = nil
		wake(nil)
	}
}

// Left returns how much time the run has left; ok is false if it has no limit.
func (w *Watch) Left() (left time.Duration, ok bool) {
	w.dog.mu.Lock()
	defer w.dog.mu.Unlock()
	return w.limit - w.spent, w.limit > 0
}

// Stop ends the watch, and returns how much time was spent.
func (w *Watch) Stop() time.Duration {
	d := w.dog
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
