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

// ErrBusy says that a script found no slot in its time. Its text is Redis' error reply to a client
// whose command finds a script running.
var ErrBusy = errors.New("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.") //lint:ignore ST1005 the wording of Redis

// errKilled ends a run, or a compilation, by SCRIPT KILL.
var errKilled = errors.New("Script killed by user with SCRIPT KILL.") //lint:ignore ST1005 the wording of Redis

const (
	// maxSeats is how many large runs there may be at a time. Each may hold Limits.Bytes, and a
	// stack beside it.
	maxSeats = 4
	// maxStanding bounds the runs that have become large and wait for a seat, with what they hold
	// by then.
	maxStanding = 64
	// maxSharedDepth is how deep calls nest that share the machine, in levels of Go calls: some
	// 1,300 calls of Lua, a megabyte of stack. Go's garbage collection goes through a stack in one
	// piece, 20 ms for a megabyte, and everything else that allocates waits for it.
	maxSharedDepth = 16_000
	// restFactor is how long the lane rests, in times of what it ran: all large runs together take
	// a quarter of one processor.
	restFactor = 3
	// maxRest bounds one rest: a slice that took long did so because the machine had others to run.
	maxRest = 20 * time.Millisecond
)

// Pace shares the machine between the runs of a process, so that no script keeps others from
// running. It is safe for concurrent use.
//
// A run begins small, and lock scripts end so. Only so many small ones run at a time, each to its
// end. One that becomes large (it is charged for more than meter.Small allows, or runs on for 50
// ms) gives up its slot and needs one of a few seats, which bounds memory. Of those seated one runs
// at a time, for a slice, and after each slice the lane rests, which bounds the share of the
// processors. A small one that is sent meanwhile waits for none of them. A compilation is a run,
// too.
type Pace struct {
	small, seated, lane *slots
	dog                 meter.Watchdog
	now                 func() time.Time
	sleep               func(ctx context.Context, d time.Duration) error

	mu      sync.Mutex
	resting time.Time      // until when the lane rests
	large   map[*stay]bool // those that have become large, and have not ended
}

// NewPace shares the processors that Go uses now: half of them, but at least one, may run small
// scripts.
func NewPace() *Pace {
	return &Pace{
		small: newSlots(max(1, runtime.GOMAXPROCS(0)/2), -1), seated: newSlots(maxSeats, maxStanding), lane: newSlots(1, -1),
		now: time.Now, sleep: pacing.Sleep, large: map[*stay]bool{},
	}
}

// Kill ends all large runs, as SCRIPT KILL does, and returns how many there were.
func (p *Pace) Kill() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.large {
		s.watch.End(errKilled)
	}
	return len(p.large)
}

// list notes that a run is large, or, at its end, that it is none any more.
func (p *Pace) list(s *stay, large bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if large {
		p.large[s] = true
		return
	}
	delete(p.large, s)
}

// restAfter has the lane rest for a slice that took so long.
func (p *Pace) restAfter(slice time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = p.now().Add(min(maxRest, restFactor*slice))
}

// restLeft is how long the lane has still to rest.
func (p *Pace) restLeft() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resting.Sub(p.now())
}
