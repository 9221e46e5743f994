//go:build unix

package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// slowScripts holds scripts that once ran for minutes, because the interpreter did not check their
// time or did not charge for their work.
var slowScripts = map[string]string{
	"a loop with a long body": `local t = {} while true do ` + strings.Repeat("t.x=t ", 65_000) + ` end`,
	"a function with a long body": `local t = {} local function f() ` +
		strings.Repeat("t.x=t ", 60_000) + ` end while true do f() end`,
	"a border that is searched for":  sparseTable + `while true do local n = #t end`,
	"an element put behind a border": sparseTable + `while true do table.insert(t, nil) end`,
	"empty matches":                  `while true do string.gsub(ARGV[1], "", "") end`,
	"chains of tables":               `local t = {} for i = 1, 90 do t = setmetatable({}, {__index = t}) end while true do ` + strings.Repeat("t.x=t.y ", 45_000) + ` end`,
	"many values": `local function f(...) local a, b while true do ` +
		strings.Repeat("a,b=... ", 50_000) + ` end end local t = {} for i = 1, 7000 do t[i] = i end f(unpack(t))`,
	"names as long as a source": `while true do pcall(function() return ` +
		strings.Repeat("x", 300_000) + `.y end) end`,
	"code that is compiled in the run": `while true do loadstring(ARGV[1]) end`,
}

// sparseTable makes a table whose border C Lua searches one by one: its hash part has all powers of
// two, and many indices.
const sparseTable = `local t = {} for i = 1, 65536 do t["k" .. i] = i end for i = 1, 65536 do t["k" .. i] = nil end
	for i = 1, 30000 do t[i] = i end for i = 0, 32 do t[2 ^ i] = i end `

// timeToEnd runs a script without a time limit, and calls end when the run is large. It returns the
// processor time from this call to the end of the run.
func timeToEnd(
	t *testing.T, scheduler *Scheduler, body string, end func(stop context.CancelCauseFunc),
) (elapsed time.Duration, err error) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	done := make(chan error, 1)
	s, err := compile(body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := s.Run(ctx, Input{Argv: []string{strings.Repeat("a", 900_000)}, Share: Share{Scheduler: scheduler, Time: -1}})
		done <- err
	}()
	if !scheduler.awaitLargeRun(done) {
		return 0, <-done
	}
	start := processorTime(t)
	end(stop)
	err = <-done
	return processorTime(t) - start, err
}

// awaitLargeRun waits until a run has become large. It returns false if the only run ended before.
func (p *Scheduler) awaitLargeRun(done <-chan error) bool {
	for len(done) == 0 {
		p.mu.Lock()
		count := len(p.largeJobs)
		p.mu.Unlock()
		if count > 0 {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// TestImmediateEnd checks that any script ends within a second when the process stops, and after
// SCRIPT KILL.
func TestImmediateEnd(t *testing.T) {
	errShutdown, scheduler := errors.New("the process stops"), NewScheduler()
	for name, body := range slowScripts {
		elapsed, err := timeToEnd(t, scheduler, body, func(stop context.CancelCauseFunc) { stop(errShutdown) })
		if err != errShutdown && !strings.Contains(err.Error(), "allocated more than") {
			t.Errorf("%s: %v", name, err)
		}
		if elapsed > time.Second {
			t.Errorf("%s: it took %v to end after the shutdown", name, elapsed)
		}
		elapsed, err = timeToEnd(t, scheduler, body, func(context.CancelCauseFunc) { scheduler.Kill() })
		if !strings.HasPrefix(err.Error(), "ERR Script killed by user with SCRIPT KILL... script: ") &&
			!strings.Contains(err.Error(), "allocated more than") {
			t.Errorf("%s: %v", name, err)
		}
		if elapsed > time.Second {
			t.Errorf("%s: it took %v to end after SCRIPT KILL", name, elapsed)
		}
	}
	if len(scheduler.largeJobs) > 0 {
		t.Error("some runs are still listed")
	}
}

func TestEndAtTimeLimit(t *testing.T) {
	for name, body := range slowScripts {
		s, err := compile(body)
		if err != nil {
			t.Fatal(name, err)
		}
		start := processorTime(t)
		_, err = s.Run(t.Context(), Input{Argv: []string{strings.Repeat("a", 900_000)},
			Share: Share{Time: 100 * time.Millisecond}})
		if err == nil || !strings.Contains(err.Error(), "ran for longer than") &&
			!strings.Contains(err.Error(), "allocated more than") {
			t.Errorf("%s: %v", name, err)
		}
		if elapsed := processorTime(t) - start; elapsed > time.Second {
			t.Errorf("%s: it took %v", name, elapsed)
		}
	}
}

// longSources holds sources that take long to compile.
var longSources = map[string]string{
	"many tokens":    strings.Repeat("a=a ", 250_000),
	"many variables": nestedLocals(100) + strings.Repeat("y=y ", 20_000) + strings.Repeat(" end", 100),
	"many shapes":    "local a " + strings.Repeat("a=a..a..KEYS[1] redis.call('get',a) ", 25_000),
	"many callbacks": strings.Repeat("redis.register_function('f',f) local x=KEYS[1] ",
		150) + strings.Repeat("redis.call('get',x[1]) ", 20_000),
}

// nestedLocals returns nested functions with 190 local variables each.
func nestedLocals(depth int) string {
	var b strings.Builder
	for range depth {
		b.WriteString("function f() local a" + strings.Repeat(",a", 189) + " ")
	}
	return b.String()
}

// TestEndOfCompilation checks that a long compilation ends in the same ways as a long run.
func TestEndOfCompilation(t *testing.T) {
	errShutdown, scheduler := errors.New("the process stops"), NewScheduler()
	for name, body := range longSources {
		if _, err := Compile(t.Context(), body, Share{Short: true}); err != ErrTooLarge {
			t.Errorf("%s: %v, want %v", name, err, ErrTooLarge)
		}
		for want, end := range map[string]func(context.CancelCauseFunc){
			errShutdown.Error(): func(stop context.CancelCauseFunc) { stop(errShutdown) },
			"killed by user":    func(context.CancelCauseFunc) { scheduler.Kill() },
		} {
			ctx, stop := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := Compile(ctx, body, Share{Scheduler: scheduler, Time: -1})
				done <- err
			}()
			if scheduler.awaitLargeRun(done) {
				end(stop)
			}
			// The compilation may have ended before it was stopped.
			if err := <-done; err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			stop(nil)
		}
		if _, err := Compile(t.Context(), body, Share{Time: 20 * time.Millisecond}); err == nil ||
			!strings.Contains(err.Error(), "ran for longer than 20ms") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compile(t.Context(), "return {"+strings.Repeat("1,", 500_000)+"}", Share{Time: -1}); err == nil ||
		!strings.Contains(err.Error(), "allocated more than") {
		t.Errorf("half a million tokens: %v", err)
	}
}
