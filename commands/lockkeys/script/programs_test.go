//go:build unix

package script

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/commands/lockkeys/keyspace"
)

// programsVariable names the environment variable with the number of programs. firstVariable names
// the variable with the index of the first program, from 0, so that several processes can share the
// work.
const programsVariable, firstVariable = "REDLOCK_PROGRAMS", "REDLOCK_FIRST_PROGRAM"

const (
	// programTime is the time limit of a program, and programExtraTime is the additional time that
	// it may take. So a program with a limit of a second may take 1.3 seconds.
	programTime      = 30 * time.Millisecond
	programExtraTime = 300 * time.Millisecond
	// endTime limits how long a program may take to end after the signal to end.
	endTime = 100 * time.Millisecond
)

// TestPrograms compiles and runs programs that do not end. It checks that each program ends at its
// time limit. A program must also end within endTime after SCRIPT KILL, after the process begins to
// stop, or after its client has disconnected. Times are processor times, because the machine may be
// busy.
// REDLOCK_PROGRAMS is the number of programs.
func TestPrograms(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(programsVariable))
	if err != nil {
		n = 200
	}
	if err != nil && testing.Short() {
		n = 40
	}
	first, _ := strconv.Atoi(os.Getenv(firstVariable)) // 0 if it is not set
	var maxExtraTime, maxEndTime time.Duration
	reasons := map[string]int{}
	for i := first; i < first+n; i++ {
		p := prober{T: t, random: rand.New(rand.NewPCG(uint64(i), 1)), scheduler: NewScheduler()}
		p.body = (&adversary{Rand: p.random}).program()
		extra, end := p.probe(i)
		reasons[p.reason]++
		maxExtraTime, maxEndTime = max(maxExtraTime, extra), max(maxEndTime, end)
		if t.Failed() {
			t.Fatalf("program %d of %d bytes:\n%.1000s", i, len(p.body), p.body)
		}
	}
	t.Logf("%d programs: the longest took %v more than its %v, the slowest end took %v; reasons: %v", n, maxExtraTime,
		programTime, maxEndTime, reasons)
}

type prober struct {
	*testing.T
	random    *rand.Rand
	scheduler *Scheduler
	body      string
	reason    string // the reason for its end
}

// errStopping ends a program because its process is stopping.
var errStopping = errors.New("the proxy is shutting down")

// endErrors holds a part of the error for each way in which a program ends.
var endErrors = []string{"ran for longer than", errKilled.Error(), errStopping.Error(), errClientDisconnected.Error()}

// probe runs the program until its time limit, or ends it earlier, in a way that i selects. It
// returns the processor time beyond the time limit, and the time that the end took.
func (p *prober) probe(i int) (extraTime, end time.Duration) {
	ctx, stop := context.WithCancelCause(p.Context())
	defer stop(nil)
	var clientDisconnected atomic.Bool
	share := Share{Scheduler: p.scheduler, Time: programTime, Allowance: &Allowance{}, ClientDisconnected: clientDisconnected.Load}
	way := i % len(endErrors)
	if way != 0 {
		share.Time = time.Minute
	}
	done := make(chan error, 1)
	start := processorTime(p.T)
	go func() { done <- p.run(ctx, share) }()
	if way == 0 {
		p.checkEnd(<-done, endErrors[way])
		if extraTime = processorTime(p.T) - start - programTime; extraTime > programExtraTime {
			p.Errorf("it took %v more than its %v", extraTime, programTime)
		}
		return extraTime, 0
	}
	if !p.scheduler.awaitLargeRun(done) { // the program has ended: by an error, or at a memory limit
		p.checkEnd(<-done, "Redis is busy")
		return 0, 0
	}
	time.Sleep(time.Duration(p.random.IntN(10)) * time.Millisecond) // a random point of its work
	endStart := processorTime(p.T)
	switch way {
	case 1:
		// Nothing can be killed between compilation and run.
		for len(done) == 0 && p.scheduler.Kill() == 0 {
			time.Sleep(time.Millisecond)
		}
	case 2:
		stop(errStopping)
	case 3:
		clientDisconnected.Store(true)
	}
	err := <-done
	p.checkEnd(err, endErrors[way])
	if end = processorTime(p.T) - endStart; end > endTime {
		p.Errorf("it took %v to end: %v", end, err)
	}
	return 0, end
}

func (p *prober) run(ctx context.Context, share Share) error {
	s, err := Compile(ctx, p.body, share)
	if err != nil {
		return err
	}
	call := func([]string, func(int)) (keyspace.Reply, error) { return keyspace.BulkReply("v"), nil }
	_, err = s.Run(ctx, Input{Argv: []string{strings.Repeat("a", 200_000)}, Call: call, Share: share})
	return err
}

// checkEnd fails the test unless the program ended for this reason, or had already ended.
func (p *prober) checkEnd(err error, want string) {
	if err == nil { // an error ended the program's loop, and the program returned
		return
	}
	for _, reason := range []string{want, "allocated more than", "called more than", "Error compiling script",
		"returned "} {
		if strings.Contains(err.Error(), reason) {
			p.reason = reason
			return
		}
	}
	p.Errorf("it ended with %v, want %s", err, want)
}

func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
