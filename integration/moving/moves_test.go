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
	// locksEnv sets how many further locks, which no client uses, are moved.
	locksEnv = "REDLOCK_MOVE_LOCKS"
)

// slack is the tolerance for differences between the clocks of the test and of the servers.
const slack = 50 * time.Millisecond

// TestMovesUnderLoad: the locks move to the masters and back repeatedly, while clients lock in all
// dialects through two proxies, and at the upstream until the first move. No lock is held twice,
// lost, or reappears. In rounds without a fault no client gets an error.
func TestMovesUnderLoad(t *testing.T) {
	redistest.SkipShort(t)
	moves := int(kit.NumberFrom(t, movesEnv, 3))
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	random := rand.New(rand.NewPCG(seed, 1))
	r := startRig(t)
	asking := kit.Connect(t, r.proxies[0])
	for _, k := range keepers {
		kit.Do(t, asking, k.make...)
		if k.ends {
			kit.Want(t, asking, int64(1), "PEXPIRE", k.key, kit.Millis(keptFor))
		}
	}
	for i := range int(kit.NumberFrom(t, locksEnv, 200)) {
		kit.Do(t, asking, "SET", "lock:more:"+strconv.Itoa(i), "x", "PX", kit.Millis(keptFor))
	}
	l := startLoad(t, r, seed)
	time.Sleep(time.Second) // clients keep running
	l.leaveUpstream()
	var pauses, faulty []time.Duration
	for i := range 2 * moves {
		back := i%2 == 1
		fault := none
		if i%10 == 2 || i%10 == 5 || i%10 == 8 {
			fault = mishap(1 + (i/10*3+i%10/3+int(seed%uint64(faults-1)))%int(faults-1))
		}
		before := look(t, kit.Connect(t, r.proxies[random.IntN(2)]))
		l.take()
		began := time.Now()
		ended := l.moves()
		said := r.moveWith(random, l, fault, back)
		ended()
		took := time.Since(began)
		time.Sleep(time.Duration(200+random.IntN(300)) * time.Millisecond) // clients keep running
		after := look(t, kit.Connect(t, r.proxies[random.IntN(2)]))
		seen := l.take()
		for key, was := range before { // a key may expire later by the duration of a command, but never earlier
			if is := after[key]; is.endless != was.endless || !is.endless &&
				(is.from.Sub(was.to) > slack+took || was.from.Sub(is.to) > slack) {
				t.Errorf("round %d: %s was over at %v to %v before it was moved, and is at %v to %v", i, key, was.from,
					was.to, is.from, is.to)
			}
		}
		if err := r.wantOnlyAt(back); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		if fault == none {
			pauses = append(pauses, seen.slowest)
		} else {
			faulty = append(faulty, seen.slowest)
		}
		t.Logf("round %d: back=%v, %v: %v; %d grants, slowest %v (%s); errors: %s; %s", i, back, fault,
			took.Round(time.Millisecond), seen.grants, seen.slowest.Round(time.Millisecond),
			seen.slowestOf, counts(seen.errors), strings.ReplaceAll(strings.TrimSpace(said), "\n", " | "))
		for what := range seen.errors {
			if fault == none && !isSlow(what) && !strings.Contains(what, hasty.String()) || !explained(what) {
				t.Errorf("round %d (%v): %d × %s", i, fault, seen.errors[what], what)
			}
		}
		for _, what := range seen.wrong {
			t.Errorf("round %d (%v): %s", i, fault, what)
		}
	}
	grants, double := l.stop()
	last := l.take()
	for _, what := range last.wrong {
		t.Error(what)
	}
	for i, one := range double {
		if i < 20 {
			t.Error("DOUBLE GRANT: ", one)
		}
	}
	t.Logf("%d grants: %s", grants, counts(l.dialect))
	t.Logf("replies: %s", counts(l.replies))
	t.Logf("%d moves, %d of them with faults, %d double grants; the longest that a command took: %s; with faults: %s",
		2*moves, len(faulty), len(double), figures(pauses), figures(faulty))
	if grants < 100*moves {
		t.Errorf("%d grants only", grants)
	}
}

// figures returns the median and the maximum.
func figures(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return fmt.Sprintf("median %v, max %v", all[len(all)/2].Round(time.Millisecond),
		all[len(all)-1].Round(time.Millisecond))
}

// isSlow reports whether a command failed only because the machine was stopped for longer than the
// limit of the masters' replies, or of a ballot. A move does not cause this.
func isSlow(what string) bool {
	_, cause, unknown := strings.Cut(what, ": NOQUORUM ")
	return unknown && (strings.Contains(cause, "agreed only after") || strings.Contains(cause, "no answer in time") ||
		strings.HasPrefix(cause, "other clients have changed the key since"))
}

// explained reports whether a fault may have caused a wrong reply.
func explained(what string) bool {
	for _, kind := range []string{"connection failed", "no answer in", "NOQUORUM", "UPSTREAM", "upstream", "LOADING"} {
		if strings.Contains(what, kind) {
			return true
		}
	}
	return false
}

// mishap is a fault during a move.
type mishap int

const (
	none mishap = iota
	otherStopped
	moverKilled
	masterKilled
	upstreamRestarted
	moverStopped
	interrupted
	faults
)

func (f mishap) String() string {
	return [...]string{"no fault", "the other proxy is stopped", "the proxy that moves is killed", "a master is killed",
		"the upstream is restarted",
		"the proxy that moves is stopped", "the program is interrupted"}[f]
}

// moveWith repeats a move during a fault until the locks have moved, and returns the output.
func (r *rig) moveWith(random *rand.Rand, l *load, fault mishap, back bool) (said string) {
	r.t.Helper()
	var flags []string
	if back {
		flags = []string{"--back"}
	}
	mover := random.IntN(2)
	if fault == none {
		return r.mustMove(mover, flags...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
	defer cancel()
	done := make(chan struct{})
	var first string
	begin := func() {
		go func() {
			defer close(done)
			out, err := r.moveUntil(ctx, mover, append([]string{"--even-if-others"}, flags...)...)
			first = fmt.Sprint(out, err)
		}()
	}
	after := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
	if random.IntN(2) == 0 {
		after /= 5
	}
	again := func(proxy int) {
		if random.IntN(3) == 0 {
			_, err := r.move(proxy, "--abort")
			said += fmt.Sprintf("abort: %v | ", err)
		}
		kit.Soon(r.t, func() error {
			out, err := r.move(proxy, append([]string{"--even-if-others"}, flags...)...)
			said += fmt.Sprintf("again: %s %v | ", strings.ReplaceAll(out, "\n", "; "), err)
			return err
		})
	}
	switch fault {
	case otherStopped, moverStopped:
		stopped := r.proxies[1-mover]
		if fault == moverStopped {
			stopped = r.proxies[mover]
		}
		begin()
		time.Sleep(after) // the next step may come after any delay
		kit.Must(r.t, stopped.Signal(syscall.SIGSTOP))
		if fault == moverStopped {
			time.Sleep(500 * time.Millisecond) // the next step may come after any delay
			again(1 - mover)
		} else {
			<-done
		}
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the fault lasts
		kit.Must(r.t, stopped.Signal(syscall.SIGCONT))
		<-done
		time.Sleep(200 * time.Millisecond) // the next step may come after any delay
		again(mover)
	case moverKilled:
		begin()
		time.Sleep(after) // the next step may come after any delay
		kit.Must(r.t, r.proxies[mover].Kill())
		<-done
		again(1 - mover)
		r.restart(mover)
	case masterKilled:
		begin()
		time.Sleep(after) // the next step may come after any delay
		master := r.masters[random.IntN(len(r.masters))]
		kit.Must(r.t, master.Kill())
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // the fault lasts
		kit.Must(r.t, master.Restart())
		<-done
		again(mover)
	case upstreamRestarted:
		begin()
		time.Sleep(after) // the next step may come after any delay
		kit.Must(r.t, r.upstream.Revive())
		<-done
		again(mover)
	case interrupted:
		begin()
		time.Sleep(after) // the next step may come after any delay
		cancel()
		<-done
		time.Sleep(200 * time.Millisecond) // the next step may come after any delay
		again(random.IntN(2))
	}
	r.wantVoting()
	return fmt.Sprintf("%v after %v: %s | %s", fault, after, first, said)
}
