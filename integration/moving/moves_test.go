//go:build integration

package moving

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// movesEnv sets the number of moves, and of moves back.
	movesEnv = "REDLOCK_MOVES"
	// locksEnv sets the number of further locks that the proxies move, and that no client uses.
	locksEnv = "REDLOCK_MOVE_LOCKS"
)

// slack is the tolerance for differences between the clocks of the test and of the servers.
const slack = 50 * time.Millisecond

// TestMovesUnderLoad moves the locks to the masters and back repeatedly, while clients lock in all
// dialects. The clients lock through two proxies, and at the upstream until the first move. No lock
// is held twice, is lost, or reappears. In rounds without a fault no client gets an error.
func TestMovesUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	moves := int(kit.NumberFrom(t, movesEnv, 3))
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	random := rand.New(rand.NewPCG(seed, 1))
	r := startRig(t)
	client := kit.Connect(t, r.proxies[0])
	for _, k := range heldLocks {
		kit.Do(t, client, k.setCommand...)
		if k.expires {
			kit.Want(t, client, int64(1), "PEXPIRE", k.key, kit.Millis(heldLockTTL))
		}
	}
	for i := range int(kit.NumberFrom(t, locksEnv, 200)) {
		kit.Do(t, client, "SET", "lock:more:"+strconv.Itoa(i), "x", "PX", kit.Millis(heldLockTTL))
	}
	l := startLoad(t, r, seed)
	time.Sleep(time.Second) // clients keep running
	l.stopDirectClients()
	var pauses, faultyPauses []time.Duration
	for i := range 2 * moves {
		back := i%2 == 1
		fault := noFault
		if i%10 == 2 || i%10 == 5 || i%10 == 8 {
			fault = moveFault(1 + (i/10*3+i%10/3+int(seed%uint64(faultCount-1)))%int(faultCount-1))
		}
		rangesBefore := wantHeldLocks(t, kit.Connect(t, r.proxies[random.IntN(2)]))
		l.takeRound()
		startedAt := time.Now()
		endMove := l.beginMove()
		output := r.moveDuringFault(random, l, fault, back)
		endMove()
		elapsed := time.Since(startedAt)
		time.Sleep(time.Duration(200+random.IntN(300)) * time.Millisecond) // clients keep running
		rangesAfter := wantHeldLocks(t, kit.Connect(t, r.proxies[random.IntN(2)]))
		records := l.takeRound()
		// A key may expire later by the duration of the move, but never earlier.
		for key, before := range rangesBefore {
			if after := rangesAfter[key]; after.withoutTTL != before.withoutTTL || !after.withoutTTL &&
				(after.from.Sub(before.to) > slack+elapsed || before.from.Sub(after.to) > slack) {
				t.Errorf("round %d: %s was over at %v to %v before it was moved, and is at %v to %v", i, key, before.from,
					before.to, after.from, after.to)
			}
		}
		if err := r.checkNoRemainingKeys(back); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		if fault == noFault {
			pauses = append(pauses, records.maxDuration)
		} else {
			faultyPauses = append(faultyPauses, records.maxDuration)
		}
		t.Logf("round %d: back=%v, %v: %v; %d grants, slowest %v (%s); errors: %s; %s", i, back, fault,
			elapsed.Round(time.Millisecond), records.grants, records.maxDuration.Round(time.Millisecond),
			records.slowestCommand, formatCounts(records.errors), strings.ReplaceAll(strings.TrimSpace(output), "\n", " | "))
		for failure := range records.errors {
			if fault == noFault && !isSlowMachine(failure) && !strings.Contains(failure, shortTimeout.String()) || !isExplained(failure) {
				t.Errorf("round %d (%v): %d × %s", i, fault, records.errors[failure], failure)
			}
		}
		for _, violation := range records.violations {
			t.Errorf("round %d (%v): %s", i, fault, violation)
		}
	}
	grants, overlaps := l.stop()
	last := l.takeRound()
	for _, violation := range last.violations {
		t.Error(violation)
	}
	for i, overlap := range overlaps {
		if i < 20 {
			t.Error("DOUBLE GRANT: ", overlap)
		}
	}
	t.Logf("%d grants: %s", grants, formatCounts(l.dialectGrants))
	t.Logf("replies: %s", formatCounts(l.replies))
	t.Logf("%d moves, %d of them with faults, %d double grants; the longest that a command took: %s; with faults: %s",
		2*moves, len(faultyPauses), len(overlaps), summary(pauses), summary(faultyPauses))
	if grants < 100*moves {
		t.Errorf("%d grants only", grants)
	}
}

// summary returns the median and the maximum as text.
func summary(durations []time.Duration) string {
	if len(durations) == 0 {
		return "none"
	}
	slices.Sort(durations)
	return fmt.Sprintf("median %v, max %v", durations[len(durations)/2].Round(time.Millisecond),
		durations[len(durations)-1].Round(time.Millisecond))
}

// isSlowMachine reports whether a command failed only because the machine was too slow. The machine
// was stopped for longer than the limit of the masters' replies, or of a ballot. A move does not
// cause such a stop.
func isSlowMachine(failure string) bool {
	_, cause, isNoQuorum := strings.Cut(failure, ": NOQUORUM ")
	return isNoQuorum && (kit.IsLateText(cause) || strings.Contains(cause, "no answer in time") ||
		strings.HasPrefix(cause, "other clients have changed the key since"))
}

// isExplained reports whether a fault may have caused a wrong reply.
func isExplained(failure string) bool {
	for _, kind := range []string{"connection failed", "no answer in", "NOQUORUM", "UPSTREAM", "upstream", "LOADING"} {
		if strings.Contains(failure, kind) {
			return true
		}
	}
	return false
}

// moveFault is a fault during a move.
type moveFault int

const (
	noFault moveFault = iota
	otherProxyStopped
	moverKilled
	masterKilled
	upstreamRestarted
	moverStopped
	moveInterrupted
	faultCount
)

func (f moveFault) String() string {
	return [...]string{"no fault", "the other proxy is stopped", "the proxy that moves is killed", "a master is killed",
		"the upstream is restarted",
		"the proxy that moves is stopped", "the program is interrupted"}[f]
}

// moveDuringFault repeats a move during a fault until the locks have moved. It returns the output.
func (r *rig) moveDuringFault(random *rand.Rand, l *load, fault moveFault, back bool) (output string) {
	r.t.Helper()
	var flags []string
	if back {
		flags = []string{"--back"}
	}
	mover := random.IntN(2)
	if fault == noFault {
		return r.mustMove(mover, flags...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kit.WaitLimit)
	defer cancel()
	done := make(chan struct{})
	var firstOutput string
	begin := func() {
		go func() {
			defer close(done)
			text, err := r.moveContext(ctx, mover, append([]string{"--even-if-others"}, flags...)...)
			firstOutput = fmt.Sprint(text, err)
		}()
	}
	delay := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
	if random.IntN(2) == 0 {
		delay /= 5
	}
	retryMove := func(proxy int) {
		if random.IntN(3) == 0 {
			_, err := r.move(proxy, "--abort")
			output += fmt.Sprintf("abort: %v | ", err)
		}
		kit.Eventually(r.t, func() error {
			text, err := r.move(proxy, append([]string{"--even-if-others"}, flags...)...)
			output += fmt.Sprintf("again: %s %v | ", strings.ReplaceAll(text, "\n", "; "), err)
			return err
		})
	}
	switch fault {
	case otherProxyStopped, moverStopped:
		stoppedProxy := r.proxies[1-mover]
		if fault == moverStopped {
			stoppedProxy = r.proxies[mover]
		}
		begin()
		time.Sleep(delay) // the next step may come after any delay
		kit.Must(r.t, stoppedProxy.Signal(syscall.SIGSTOP))
		if fault == moverStopped {
			time.Sleep(500 * time.Millisecond) // the next step may come after any delay
			retryMove(1 - mover)
		} else {
			<-done
		}
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the fault lasts
		kit.Must(r.t, stoppedProxy.Signal(syscall.SIGCONT))
		<-done
		time.Sleep(200 * time.Millisecond) // the next step may come after any delay
		retryMove(mover)
	case moverKilled:
		begin()
		time.Sleep(delay) // the next step may come after any delay
		kit.Must(r.t, r.proxies[mover].Kill())
		<-done
		retryMove(1 - mover)
		r.restart(mover)
	case masterKilled:
		begin()
		time.Sleep(delay) // the next step may come after any delay
		master := r.masters[random.IntN(len(r.masters))]
		kit.Must(r.t, master.Kill())
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the fault lasts
		kit.Must(r.t, master.Restart())
		<-done
		retryMove(mover)
	case upstreamRestarted:
		begin()
		time.Sleep(delay) // the next step may come after any delay
		kit.Must(r.t, r.upstream.RestartWithData())
		<-done
		retryMove(mover)
	case moveInterrupted:
		begin()
		time.Sleep(delay) // the next step may come after any delay
		cancel()
		<-done
		time.Sleep(200 * time.Millisecond) // the next step may come after any delay
		retryMove(random.IntN(2))
	}
	r.wantVoting()
	return fmt.Sprintf("%v after %v: %s | %s", fault, delay, firstOutput, output)
}
