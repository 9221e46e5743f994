package script

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
	"redlock-proxy/internal/redistest"
)

// runGroup holds scripts that run at the same time, with one Scheduler, until the test ends them.
type runGroup struct {
	*testing.T
	scheduler *Scheduler
	ctx       context.Context
	end       context.CancelFunc
	wg        sync.WaitGroup
	// runningCalls counts the runs that are in a redis.call; maxRunningCalls is its maximum.
	runningCalls, maxRunningCalls, calls atomic.Int64
}

// errTestDone ends the runs of a runGroup.
var errTestDone = errors.New("the test has seen enough")

func newRunGroup(t *testing.T, smallSlots int) *runGroup {
	ctx, end := context.WithCancelCause(t.Context())
	c := &runGroup{T: t, scheduler: NewScheduler(), ctx: ctx, end: func() { end(errTestDone) }}
	c.scheduler.smallSlots = newSlots(smallSlots, -1)
	t.Cleanup(func() { c.end(); c.wg.Wait() })
	return c
}

// call implements redis.call, and counts the runs in it.
func (c *runGroup) call([]string, func(int)) (keyspace.Reply, error) {
	now := c.runningCalls.Add(1)
	defer c.runningCalls.Add(-1)
	for most := c.maxRunningCalls.Load(); now > most && !c.maxRunningCalls.CompareAndSwap(most, now); most = c.maxRunningCalls.Load() {
	}
	c.calls.Add(1)
	time.Sleep(10 * time.Microsecond) // lets other runs enter call
	return keyspace.IntReply(1), nil
}

// start runs a script without a time limit. It sends the error to done, if done is not nil.
func (c *runGroup) start(body string, done chan<- error) {
	s, err := compile(body)
	if err != nil {
		c.Fatal(err)
	}
	c.wg.Go(func() {
		_, err := s.Run(c.ctx, Input{Call: c.call, Share: Share{Scheduler: c.scheduler, Time: -1}, Limits: Limits{Calls: 1 << 40}})
		if done != nil {
			done <- err
		}
	})
}

// awaitWaiters waits until n runs wait for a large slot.
func (c *runGroup) awaitWaiters(n int) {
	c.Helper()
	redistest.Await(c, fmt.Sprintf("%d wait for a large slot", n), func() bool { return c.scheduler.largeSlots.waiters() == n })
}

func (s *slots) waiters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// TestSlotLimit checks that at most one large run, and one small run for each small slot, execute
// at a time.
func TestSlotLimit(t *testing.T) {
	const smallSlots, clients = 2, 40
	c := newRunGroup(t, smallSlots)
	for range clients {
		c.start(`while true do redis.call("x") end`, nil)
	}
	done := make(chan error, clients)
	for range clients {
		c.start(`for i = 1, 5 do redis.call("x") end`, done)
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most := c.maxRunningCalls.Load(); most > smallSlots+1 {
		t.Errorf("%d scripts ran at a time, at most %d may", most, smallSlots+1)
	}
}

// TestSmallScriptDuringEndlessScripts checks that a small script ends while endless scripts run.
func TestSmallScriptDuringEndlessScripts(t *testing.T) {
	c := newRunGroup(t, 1)
	for range maxLargeRuns + maxWaitingRuns {
		c.start(`while true do end`, nil)
	}
	c.awaitWaiters(maxWaitingRuns)
	done := make(chan error, 1)
	for range 100 {
		c.start(`return redis.call("x")`, done)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if free := c.scheduler.largeSlots.freeCount; free != 0 {
		t.Errorf("%d large slots are free: the endless scripts have ended", free)
	}
}

// TestTooManyLargeScripts checks that only a limited number of large runs may wait. The Scheduler
// refuses the next run, immediately if that run has no time limit.
func TestTooManyLargeScripts(t *testing.T) {
	c := newRunGroup(t, 1)
	for range maxLargeRuns + maxWaitingRuns {
		c.start(`while true do end`, nil)
	}
	c.awaitWaiters(maxWaitingRuns)
	for _, body := range []string{
		`while true do end`, `while true do pcall(function() while true do end end) end`, `return ("x"):rep(300000)`,
		`local function f() return 1 + f() end f()`,
	} {
		done := make(chan error, 1)
		c.start(body, done)
		var limitErr *LimitError
		if err := <-done; !errors.As(err, &limitErr) || limitErr.Error() != ErrBusy.Error() ||
			!strings.HasPrefix(err.Error(), "BUSY ") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestEndOfSlotWait checks that the script's time limits a wait for a slot, which then ends with
// BUSY.
func TestEndOfSlotWait(t *testing.T) {
	c := newRunGroup(t, 1)
	if !c.scheduler.smallSlots.tryTake() {
		t.Fatal("no slot")
	}
	s, _ := compile(`return 1`)
	_, err := s.Run(t.Context(), Input{Share: Share{Scheduler: c.scheduler, Time: time.Millisecond}})
	if err == nil || err.Error() != ErrBusy.Error() {
		t.Errorf("for a small slot: %v", err)
	}
	c.scheduler.smallSlots.release()
	for range maxLargeRuns {
		c.scheduler.largeSlots.tryTake()
	}
	s, _ = compile(`while true do end`)
	_, err = s.Run(t.Context(), Input{Share: Share{Scheduler: c.scheduler, Time: 300 * time.Millisecond}})
	if err == nil || err.Error() != ErrBusy.Error() && !strings.Contains(err.Error(),
		"ran for longer") { // on a slow machine, a small run reaches its time limit first
		t.Errorf("for a large slot: %v", err)
	}
	c.scheduler.largeSlots.release()
	_, err = s.Run(t.Context(), Input{Share: Share{Scheduler: c.scheduler, Time: 50 * time.Millisecond}})
	if err == nil || !strings.HasPrefix(err.Error(), "ERR script ran for longer than 50ms") {
		t.Errorf("a large run at its time limit: %v", err)
	}
	if c.scheduler.smallSlots.freeCount != 1 || c.scheduler.turn.freeCount != 1 || c.scheduler.largeSlots.freeCount != 1 {
		t.Errorf("slots were lost: %+v", c.scheduler)
	}
}

// TestMemoryLimitOfScripts checks that the memory of scripts is limited by the large slots, not
// by the number of clients. Each of the scripts keeps 14 MB of strings until it ends.
func TestMemoryLimitOfScripts(t *testing.T) {
	const scriptCount, limit = 50, 200 << 20
	before := memoryInUse()
	c := newRunGroup(t, 1)
	for range scriptCount {
		c.start(`local t = {} for i = 1, 1700 do t[i] = ("x"):rep(8000 + i) end
			while true do redis.call("x") end`, nil)
	}
	c.awaitWaiters(scriptCount - maxLargeRuns)
	redistest.Await(t, "the strings are allocated", func() bool { return c.calls.Load() >= 1000 })
	if now := memoryInUse(); now > before+limit {
		t.Errorf("%d MB are in use", (now-before)>>20)
	}
}

// memoryInUse returns the bytes of the heap and the stacks.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestCancelWhileWaiting checks that a wait ends, with the cause, when the client disconnects.
func TestCancelWhileWaiting(t *testing.T) {
	c := newRunGroup(t, 1)
	c.scheduler.smallSlots.tryTake()
	done := make(chan error, 1)
	c.start(`return 1`, done)
	redistest.Await(t, "it waits", func() bool { return c.scheduler.smallSlots.waiters() > 0 })
	c.end()
	if err := <-done; err != errTestDone {
		t.Error(err)
	}
	if c.scheduler.smallSlots.waiters() != 0 {
		t.Error("the run still waits")
	}
}

// TestIdleTimeOfTurn checks that the turn stays idle for three times the slice, so that large
// scripts use a quarter of one processor.
func TestIdleTimeOfTurn(t *testing.T) {
	c := newRunGroup(t, 1)
	now, idleTimes := time.UnixMilli(0), []time.Duration{}
	c.scheduler.now = func() time.Time { return now }
	c.scheduler.sleep = func(_ context.Context, d time.Duration) error {
		idleTimes, now = append(idleTimes, d), now.Add(d)
		return nil
	}
	s, err := Share{Scheduler: c.scheduler, Time: -1}.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Grow(); err != nil || s.hasSmallSlot || !s.hasLargeSlot || !s.hasTurn {
		t.Fatal(err, s)
	}
	for _, slice := range []time.Duration{time.Millisecond, 2 * time.Millisecond, time.Second} {
		now = now.Add(slice)
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
	if got, want := fmt.Sprint(idleTimes), fmt.Sprint([]time.Duration{3 * time.Millisecond, 6 * time.Millisecond,
		maxIdleTime}); got != want {
		t.Errorf("idle %s, want %s", got, want)
	}
}

// TestDelayedRefusal checks that a run that gets no large slot ends only at its time limit.
// Otherwise its client would send the next script at once.
func TestDelayedRefusal(t *testing.T) {
	c := newRunGroup(t, 1)
	c.scheduler.largeSlots = newSlots(0, 0)
	waited := time.Duration(0)
	c.scheduler.sleep = func(_ context.Context, d time.Duration) error {
		if c.scheduler.smallSlots.freeCount != 1 {
			t.Error("the run keeps a slot meanwhile")
		}
		waited += d
		return nil
	}
	s, _ := compile(`while true do end`)
	_, err := s.Run(t.Context(), Input{Share: Share{Scheduler: c.scheduler, Time: time.Hour}})
	if err == nil || err.Error() != ErrBusy.Error() || waited < 50*time.Minute {
		t.Errorf("%v after %v", err, waited)
	}
}

// TestDepthLimit checks that with a Scheduler calls nest less deep, because Go's garbage collection
// scans a stack in one piece. Without a Scheduler they nest as in C Lua.
func TestDepthLimit(t *testing.T) {
	s, _ := compile(`local n = 0 local function f() n = n + 1 return 1 + f() end pcall(f) return n`)
	unscheduled, err := s.Run(t.Context(), Input{Share: Share{Time: -1}})
	scheduled, err2 := s.Run(t.Context(), Input{Share: Share{Scheduler: NewScheduler(), Time: -1}})
	if err != nil || err2 != nil || unscheduled.Int < 10_000 || scheduled.Int < 500 || scheduled.Int > 2_000 {
		t.Errorf("%d calls, %v; %d with a Scheduler, %v", unscheduled.Int, err, scheduled.Int, err2)
	}
}

// TestReleaseOfSlots checks that a failing run releases its slots.
func TestReleaseOfSlots(t *testing.T) {
	c := newRunGroup(t, 1)
	for _, body := range []string{`error("x")`, `return redis.call("x")`,
		`local t = {} while true do t[#t + 1] = ("x"):rep(1e6) end`, `local function f() return 1 + f() end f()`} {
		done := make(chan error, 1)
		c.start(body, done)
		<-done
		if c.scheduler.smallSlots.freeCount != 1 || c.scheduler.largeSlots.freeCount != maxLargeRuns || c.scheduler.turn.freeCount != 1 {
			t.Fatalf("%s: %d small, %d large, %d turn", body, c.scheduler.smallSlots.freeCount, c.scheduler.largeSlots.freeCount,
				c.scheduler.turn.freeCount)
		}
	}
}

// TestSharedAllowance checks that the runs that share an allowance share its time.
func TestSharedAllowance(t *testing.T) {
	allowance := &Allowance{}
	in := Input{Share: Share{Allowance: allowance, Time: time.Hour}}
	endless, _ := compile(`while true do end`)
	for range 2 { // the second run has no time left
		allowance.spentTime += time.Hour - 30*time.Millisecond
		if _, err := endless.Run(t.Context(), in); err == nil || !strings.HasPrefix(err.Error(),
			"ERR script ran for longer than 1h0m0s script: ") {
			t.Error(err)
		}
	}
	if allowance.spentTime < time.Hour {
		t.Errorf("spent %v", allowance.spentTime)
	}
}
