package locks

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/bench/suite"
)

// errorPause is the pause after an error, so that a contender that fails immediately does not spin.
const errorPause = time.Millisecond

// pair describes one lock and unlock. Times count from the planned beginning of the window, and are
// negative before it.
type pair struct {
	client                           int
	sendTime, grantTime, releaseTime time.Duration
}

// record holds the events of one run.
type record struct {
	clients int
	shared  bool
	window  window
	pairs   []pair
	errors  map[string]int // by text
	cpu     cpuTimes       // spent within the window
}

// window is the time between the two readings of the CPU times. from and to count from the planned
// beginning of the window. On a busy machine the readings can be late, so the figures use the
// actual length.
type window struct{ from, to time.Duration }

func (w window) length() time.Duration { return w.to - w.from }

func (w window) contains(at time.Duration) bool { return at >= w.from && at < w.to }

// isAfterWarmUp reports whether a lock was requested after the warm-up.
func (w window) isAfterWarmUp(p pair) bool { return p.sendTime >= w.from }

// load runs the clients of one run.
type load struct {
	length    time.Duration // length of the window
	thinkTime time.Duration // mean pause between an unlock and the next lock
	shared    bool          // all clients use one key
	startTime time.Time     // planned beginning of the window
	ended     atomic.Bool   // the window has ended
}

// run lets all sessions lock and unlock until the window has ended and every requested lock is
// released.
func (l *load) run(ctx context.Context, f *fleet, sessions []session) (record, error) {
	runtime.GC() // frees the memory of the previous run
	l.startTime = time.Now().Add(warmUp)
	parts := make([]record, len(sessions))
	var workers sync.WaitGroup
	for i, s := range sessions {
		workers.Go(func() { l.lockRepeatedly(ctx, i, s, &parts[i]) })
	}
	spent, seen, err := l.measureCPU(ctx, f)
	l.ended.Store(true)
	workers.Wait()
	whole := merge(parts)
	whole.clients, whole.shared, whole.window, whole.cpu = len(sessions), l.shared, seen, spent
	return whole, err
}

// measureCPU returns the CPU time that was spent within the window.
func (l *load) measureCPU(ctx context.Context, f *fleet) (usedCPU cpuTimes, cpuWindow window, err error) {
	before, from, err := l.readCPUAt(ctx, f, 0)
	if err != nil {
		return usedCPU, cpuWindow, err
	}
	after, to, err := l.readCPUAt(ctx, f, from+l.length)
	return after.sub(before), window{from: from, to: to}, err
}

// readCPUAt reads the CPU times at a time of the run, or as soon as possible after that time. It
// returns the actual time.
func (l *load) readCPUAt(ctx context.Context, f *fleet, at time.Duration) (cpuTimes, time.Duration, error) {
	if err := suite.Pause(ctx, at-l.now()); err != nil {
		return cpuTimes{}, 0, err
	}
	times, err := f.readCPU()
	return times, l.now(), err
}

// now returns the time since the planned beginning of the window.
func (l *load) now() time.Duration { return time.Since(l.startTime) }

func (l *load) lockRepeatedly(ctx context.Context, client int, s session, r *record) {
	r.errors = map[string]int{}
	for !l.ended.Load() && ctx.Err() == nil {
		p := pair{client: client, sendTime: l.now()}
		if err := l.lockAndUnlock(ctx, s, &p); err != nil {
			r.errors[err.Error()]++
			_ = suite.Pause(ctx, errorPause)
			continue
		}
		r.pairs = append(r.pairs, p)
		l.pauseToThink(ctx)
	}
}

// pauseToThink pauses between pairs, for a random time between 0 and twice the mean.
func (l *load) pauseToThink(ctx context.Context) {
	if l.thinkTime > 0 {
		_ = suite.Pause(ctx, rand.N(2*l.thinkTime))
	}
}

func (l *load) lockAndUnlock(ctx context.Context, s session, p *pair) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	p.grantTime = l.now()
	if err := s.unlock(ctx); err != nil {
		return err
	}
	p.releaseTime = l.now()
	return nil
}

// merge combines the records of the clients.
func merge(parts []record) record {
	whole := record{errors: map[string]int{}}
	for _, part := range parts {
		whole.pairs = append(whole.pairs, part.pairs...)
		for text, n := range part.errors {
			whole.errors[text] += n
		}
	}
	return whole
}
