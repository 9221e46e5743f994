package script

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"redlock-proxy/internal/lua/meter"
	"redlock-proxy/internal/pacing"
)

// ErrBusy is the error of a script that got no slot within its time limit. Its text is Redis' error
// reply to a command while a script runs.
//
//lint:ignore ST1005 the wording of Redis
var ErrBusy = errors.New("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")

// errKilled is the error of a run, or a compilation, that SCRIPT KILL ended.
var errKilled = errors.New("Script killed by user with SCRIPT KILL...") //lint:ignore ST1005 the wording of Redis

const (
	// maxLargeRuns is the number of large slots. The run in each slot may use Limits.Bytes, and a
	// stack.
	maxLargeRuns = 4
	// maxWaitingRuns limits the runs that have become large and wait for a large slot, because each
	// keeps its memory while it waits.
	maxWaitingRuns = 64
	// maxSharedDepth limits how deep calls nest in runs that share the machine, in levels of Go
	// calls. This allows some 1,300 calls of Lua, on a megabyte of stack. Go's garbage collection
	// scans a stack in one piece, which takes 20 ms for a megabyte. Meanwhile, all other goroutines
	// that allocate memory wait.
	maxSharedDepth = 16_000
	// idleFactor is the idle time of the turn after a slice, as a multiple of the slice. So all
	// large runs together take a quarter of one processor.
	idleFactor = 3
	// maxIdleTime limits one idle time, because a slice takes very long only on a busy machine.
	maxIdleTime = 20 * time.Millisecond
)

// Scheduler shares the machine between the runs of a process, so that no script blocks another
// script. It is safe for concurrent use.
//
// A run begins small, and lock scripts end small. A few small runs execute at a time, each to its
// end. A run becomes large if it is charged for more than meter.SmallLimits allows, or if it takes
// longer than 50 ms. It then releases its small slot and waits for one of a few large slots, which
// limit the memory. Large runs take turns: one of them executes at a time, for a slice. After each
// slice the turn stays idle for a while, which limits the share of the processors. Small runs never
// wait for large runs. A compilation counts as a run.
type Scheduler struct {
	smallSlots, largeSlots, turn *slots
	watchdog                     meter.Watchdog
	now                          func() time.Time
	sleep                        func(ctx context.Context, d time.Duration) error

	mu        sync.Mutex
	idleUntil time.Time     // the end of the turn's idle time
	largeJobs map[*job]bool // the large runs that have not ended
}

// NewScheduler returns a Scheduler for the processors that Go uses now: half of them, but at least
// one, may execute small runs.
func NewScheduler() *Scheduler {
	return &Scheduler{
		smallSlots: newSlots(max(1, runtime.GOMAXPROCS(0)/2), -1), largeSlots: newSlots(maxLargeRuns, maxWaitingRuns),
		turn: newSlots(1, -1),
		now:  time.Now, sleep: pacing.Sleep, largeJobs: map[*job]bool{},
	}
}

// Kill ends all large runs, for SCRIPT KILL, and returns their number.
func (p *Scheduler) Kill() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.largeJobs {
		s.watch.End(errKilled)
	}
	return len(p.largeJobs)
}

// setLarge records that a run is large, or that it has ended.
func (p *Scheduler) setLarge(s *job, isLarge bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isLarge {
		p.largeJobs[s] = true
		return
	}
	delete(p.largeJobs, s)
}

// setIdleTime keeps the turn idle after a slice, for idleFactor times the slice, but at most
// maxIdleTime.
func (p *Scheduler) setIdleTime(slice time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idleUntil = p.now().Add(min(maxIdleTime, idleFactor*slice))
}

// remainingIdleTime returns how long the turn stays idle from now.
func (p *Scheduler) remainingIdleTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idleUntil.Sub(p.now())
}
