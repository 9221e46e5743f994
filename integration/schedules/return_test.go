//go:build integration

package schedules

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
)

// TestReleasedLocksStayFree lets clients lock and unlock two busy keys while the masters are
// flushed. Each master is flushed after the previous one has caught up, but the next one may hold a
// lock that only a majority has yet: then its key is undetermined until the lease ends (REGISTER.md,
// What is not closed). When all clients have released their locks, both keys are free.
func TestReleasedLocksStayFree(t *testing.T) {
	t.Parallel()
	const clients = 8
	f := startFleet(t, 5)
	proxies := []*proxy{f.startProxy(t), f.startProxy(t)}
	f.lockCatchUpProbe(t, connect(t, proxies[0]))
	keys := []string{"lock:k0", "lock:k1"}
	var stopped atomic.Bool
	var tasks sync.WaitGroup
	var grants atomic.Int64
	for i := range clients {
		c := &locker{name: fmt.Sprint(i), client: connect(t, proxies[i%2]), key: keys[i/2%2], grants: &grants}
		tasks.Go(func() {
			for round := 0; !stopped.Load() && c.err == nil; round++ {
				c.lockAndRelease(round)
			}
			if c.err != nil {
				stopped.Store(true)
				t.Errorf("client %s: %v", c.name, c.err)
			}
		})
	}
	stop := func() { stopped.Store(true); tasks.Wait() }
	t.Cleanup(stop)
	for _, i := range []int{C, A, B, D} {
		time.Sleep(200 * time.Millisecond) // clients keep running
		mustSend(t, f.masters[i], "FLUSHALL")
		for _, p := range proxies {
			f.wantCaughtUp(t, p, i)
		}
	}
	stop()
	t.Logf("%d grants", grants.Load())
	time.Sleep(500 * time.Millisecond) // a wrong result would appear by then
	for _, key := range keys {
		f.wantFree(t, proxies[0], key)
	}
}

// TestCatchUpDuringReplacements checks that a master that loses its data votes again. Meanwhile
// clients of two proxies replace the values of a few keys all the time.
func TestCatchUpDuringReplacements(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	proxies := []*proxy{f.startProxy(t), f.startProxy(t)}
	f.lockCatchUpProbe(t, connect(t, proxies[0]))
	var stopped atomic.Bool
	var tasks sync.WaitGroup
	for i := range 4 {
		client := connect(t, proxies[i%2])
		tasks.Go(func() {
			for !stopped.Load() {
				if _, err := client.Do("INCR", fmt.Sprint("lock:", i/2)); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(10 * time.Millisecond) // sets the pace of a client
			}
		})
	}
	t.Cleanup(func() { stopped.Store(true); tasks.Wait() })
	for _, i := range []int{C, A} {
		time.Sleep(200 * time.Millisecond) // clients keep running
		mustSend(t, f.masters[i], "FLUSHALL")
		for _, p := range proxies {
			f.wantCaughtUp(t, p, i)
		}
	}
}

// TestCatchUpAfterUndo repeats TestReleasedLocksStayFree message by message. A LOCK reaches
// only E and gets NOQUORUM. Its undo is on the way to E while C, A and B are flushed in turn. Then
// the lock is free.
func TestCatchUpAfterUndo(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	slowProxy, p := f.startProxy(t), f.startProxyWithoutComparing(t)
	f.lockCatchUpProbe(t, connect(t, p))
	notReached, delayedUndo := slowProxy.hold("lock:k", 0, A, B, C, D), slowProxy.hold("lock:k", 1, E)
	if reply := kit.Do(t, connect(t, slowProxy), "LOCK", "lock:k", "t", "PX", longTTL); !kit.IsNoQuorum(reply) {
		t.Fatalf("LOCK on one master: %v", reply)
	}
	notReached.discard()
	f.wantHolders(t, "lock:k", "t", E)
	for _, i := range []int{C, A, B} {
		mustSend(t, f.masters[i], "FLUSHALL")
		f.wantCaughtUp(t, p, i)
	}
	delayedUndo.release()
	slowProxy.wantVoting(t)
	time.Sleep(agreeTime) // a wrong result would appear by then
	f.wantNoHolder(t, p)
}

// locker takes and releases a lock.
type locker struct {
	name, key string
	client    *redistest.Client
	grants    *atomic.Int64
	err       error
}

// lockAndRelease sends one LOCK. If the lock was or may have been granted, it repeats the UNLOCK
// until the reply is 1 or 0.
func (l *locker) lockAndRelease(round int) {
	token := fmt.Sprint("client", l.name, "-", round)
	reply, err := l.client.Do("LOCK", l.key, token, "PX", "20000") // less than kit.WaitLimit
	if err == nil && reply == nil {
		// The sleep sets the pace of a client.
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
		return
	}
	if isGrant(reply) {
		l.grants.Add(1)
	}
	released, start := any(nil), time.Now()
	for err == nil && released != any(int64(1)) && released != any(int64(0)) {
		if released, err = l.client.Do("UNLOCK", l.key, token); time.Since(start) > kit.WaitLimit {
			err = fmt.Errorf("UNLOCK %s %s for %v: %v", l.key, token, kit.WaitLimit, released)
		}
	}
	l.err = err
}

// removalRetention is less than the three seconds for which a master remembers a removal.
const removalRetention = 2500 * time.Millisecond

// unlock releases a lock, repeatedly if the result is unknown. It returns the time at which the
// last UNLOCK was sent.
func unlock(t *testing.T, client *redistest.Client, key, token string) (sentAt time.Time) {
	t.Helper()
	kit.Eventually(t, func() error {
		sentAt = time.Now()
		if reply := kit.Do(t, client, "UNLOCK", key, token); kit.IsNoQuorum(reply) {
			return fmt.Errorf("UNLOCK: %v", reply)
		} else if reply != any(int64(1)) && reply != any(int64(0)) {
			t.Fatalf("UNLOCK: %v", reply)
		}
		return nil
	})
	return sentAt
}

// wantFree fails the test unless a new client is granted a key. The client then releases it.
func (f *fleet) wantFree(t *testing.T, p *proxy, key string) {
	t.Helper()
	client := connect(t, p)
	if awaitGrant(t, client, time.Now().Add(kit.WaitLimit), "LOCK", key, "newcomer", "PX", "10000").IsZero() {
		for i, master := range f.masters {
			t.Logf("master %d: %v", i, readKeys(t, master, key))
		}
		t.Fatalf("no client holds %s, and no client is granted it", key)
	}
	kit.Want(t, client, int64(1), "UNLOCK", key, "newcomer")
}

// restartInTurn lets masters lose all data, each after the previous one has caught up.
func (f *fleet) restartInTurn(t *testing.T, p *proxy, masters ...int) {
	t.Helper()
	for _, i := range masters {
		kit.Must(t, f.masters[i].Restart())
		f.wantCaughtUp(t, p, i)
	}
}

// TestReleaseSurvivesRestarts releases a lock while E is unreachable, and kills the proxy that has
// to repeat the release on E. Then A and B lose their data in turn. The lock does not reappear.
func TestReleaseSurvivesRestarts(t *testing.T) {
	t.Parallel()
	for _, take := range [][]string{{"LOCK", "lock:k", "t", "PX", longTTL}, {"SET", "lock:k", "t", "NX"}} {
		t.Run(take[0], func(t *testing.T) {
			f := startFleet(t, 5)
			dyingProxy, p := f.startProxy(t), f.startProxyWithoutComparing(t)
			f.lockCatchUpProbe(t, connect(t, p))
			client := connect(t, dyingProxy)
			if reply := kit.Do(t, client, take...); !isGrant(reply) {
				t.Fatalf("%v: %v", take, reply)
			}
			f.wantHolders(t, "lock:k", "t", f.allMasters()...)
			notReached := dyingProxy.hold("lock:k", 0, E)
			kit.Want(t, client, int64(1), "UNLOCK", "lock:k", "t")
			f.wantHolders(t, "lock:k", "t", E)
			kit.Must(t, dyingProxy.Kill())
			notReached.discard()
			f.restartInTurn(t, p, A, B)
			f.wantNoHolder(t, p)
		})
	}
}

// TestUndoSurvivesRestarts repeats TestReleaseSurvivesRestarts for a LOCK that reached only E and
// got NOQUORUM.
func TestUndoSurvivesRestarts(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	dyingProxy, p := f.startProxy(t), f.startProxyWithoutComparing(t)
	f.lockCatchUpProbe(t, connect(t, p))
	notReached := append(dyingProxy.hold("lock:k", 0, A, B, C, D), dyingProxy.hold("lock:k", 1, E)...)
	if reply := kit.Do(t, connect(t, dyingProxy), "LOCK", "lock:k", "t", "PX", longTTL); !kit.IsNoQuorum(reply) {
		t.Fatalf("LOCK on one master: %v", reply)
	}
	kit.Must(t, dyingProxy.Kill())
	notReached.discard()
	f.wantHolders(t, "lock:k", "t", E)
	f.restartInTurn(t, p, A, B)
	f.wantNoHolder(t, p)
}

// TestBlockingCopiesEndWithRemoval removes a lock by a ballot that does not reach A, and kills the
// proxy that has to repeat it there. The removal ends at B and C. E loses its data, and gets a
// blocking copy, because A, D, and E would be a majority. Then B loses its data. Once the removal
// has ended at D, A alone holds the lock, and the key is free, long before the lease ends at A.
func TestBlockingCopiesEndWithRemoval(t *testing.T) {
	t.Parallel()
	const removalAtD = 20 * time.Second // longer than usual, so that E and B catch up before
	f := startFleet(t, 5)
	dyingProxy, p := f.startProxy(t), f.startProxyWithoutComparing(t)
	f.lockCatchUpProbe(t, connect(t, p))
	wantGrant(t, connect(t, p), "LOCK", "lock:k", "t", "PX", longTTL)
	f.wantHolders(t, "lock:k", "t", f.allMasters()...)
	notReached := dyingProxy.hold("lock:k", 0, A)
	kit.Want(t, connect(t, dyingProxy), int64(1), "UNLOCK", "lock:k", "t")
	f.wantHolders(t, "lock:k", "t", A) // the others all have the removal
	kit.Must(t, dyingProxy.Kill())
	notReached.discard()
	mustSend(t, f.masters[D], "PEXPIRE", "lock:k", fmt.Sprint(removalAtD.Milliseconds()))
	for _, i := range []int{B, C} {
		mustSend(t, f.masters[i], "DEL", "lock:k")
	}
	for _, i := range []int{E, B} {
		mustSend(t, f.masters[i], "FLUSHALL")
		f.wantCaughtUp(t, p, i)
		state := readKeys(t, f.masters[i], "lock:k")[0]
		if state.value == nil || state.pttl > removalAtD {
			t.Fatalf("master %d holds %v for %v, want a blocking copy for at most %v", i, state.value, state.pttl, removalAtD)
		}
	}
	f.wantFree(t, p, "lock:k")
}

// TestReleaseMeetsPromisesOfTwoMasters releases a lock while E is away, and after A and B have
// promised a ballot to another proxy, whose messages do not reach the others. The release deletes
// the lock at C and D, and the ballot that A and B promised cannot choose a value any more. So the
// key is free before the lease ends.
func TestReleaseMeetsPromisesOfTwoMasters(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 5)
	p, other := f.startProxy(t), f.startProxyWithoutComparing(t)
	client := connect(t, p)
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", longTTL)
	f.wantHolders(t, "lock:k", "t", f.allMasters()...)
	heldBallot, away := other.hold("lock:k", 0, C, D, E), p.hold("lock:k", 0, E)
	extended := sendAsync(connect(t, other), "EXTEND", "lock:k", "t", "PX", longTTL)
	for _, i := range []int{A, B} {
		f.wantCell(t, i, "lock:k", "#r")
	}
	unlock(t, client, "lock:k", "t")
	f.wantHolders(t, "lock:k", "t", E)
	heldBallot.discard()
	away.discard()
	if reply := <-extended; isGrant(reply) {
		t.Errorf("EXTEND of a released lock: %v", reply)
	}
	f.wantFree(t, p, "lock:k")
}

// TestReleaseLeavesBlockingCopy replaces a lock, which A and B hold, with a value of another proxy.
// B loses its data, and gets a blocking copy. The owner of the lock does not know of the value, and
// releases the lock. No client gets the key, because the value was chosen with B's vote.
func TestReleaseLeavesBlockingCopy(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	owner, other := f.startProxyWithoutComparing(t), f.startProxyWithoutComparing(t)
	f.lockCatchUpProbe(t, connect(t, other))
	client := connect(t, owner)
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", longTTL)
	f.wantHolders(t, "lock:k", "t", A, B, C)
	mustSend(t, f.masters[C], "DEL", "lock:k") // as if the LOCK had not reached it
	kit.Want(t, connect(t, other), "t", "SET", "lock:k", "v", "GET", "PX", longTTL)
	mustSend(t, f.masters[B], "FLUSHALL") // before C is given the value
	f.wantCaughtUp(t, other, B)
	f.wantCell(t, B, "lock:k", "#b")
	if reply := kit.Do(t, client, "UNLOCK", "lock:k", "t"); reply != any(int64(0)) && !kit.IsNoQuorum(reply) {
		t.Errorf("UNLOCK of a replaced lock: %v", reply)
	}
	for _, p := range []*proxy{owner, other} {
		if reply := kit.Do(t, connect(t, p), "LOCK", "lock:k", "newcomer", "PX", longTTL); isGrant(reply) {
			t.Errorf("LOCK of a key that has a value: %v", reply)
		}
	}
	f.wantCell(t, B, "lock:k", "#b")
}

// wantCell waits until a master has a cell with this prefix under a key.
func (f *fleet) wantCell(t *testing.T, master int, key, prefix string) {
	t.Helper()
	kit.Eventually(t, func() error {
		if got, _ := readKeys(t, f.masters[master], key)[0].value.(string); !strings.HasPrefix(got, prefix) {
			return fmt.Errorf("master %d has %q, want %s", master, got, prefix)
		}
		return nil
	})
}

// wantNoHolder fails the test if the lock lock:k with the token t is still held.
func (f *fleet) wantNoHolder(t *testing.T, p *proxy) {
	t.Helper()
	if holders := f.holders(t, "lock:k", "t"); len(holders) > len(f.masters)/2 {
		t.Errorf("the lock is on the masters %v", holders)
	}
	if reply := kit.Do(t, connect(t, p), "EXTEND", "lock:k", "t", "PX", longTTL); reply != nil {
		t.Errorf("the old owner extends the lock: %v; want nil", reply)
	}
	f.wantFree(t, p, "lock:k")
}

// TestUnlockDuringReplacement sends a GETSET of which only the first commands reach C, D and E. The
// owner releases the lock without reaching C, and the owner's proxy dies. The proxy of the GETSET
// gives up. If the UNLOCK returned 1, the lock does not reappear.
func TestUnlockDuringReplacement(t *testing.T) {
	t.Parallel()
	for passCount := range 3 {
		t.Run(fmt.Sprintf("the rest has %d commands of it", passCount), func(t *testing.T) {
			f := startFleet(t, 5)
			dyingProxy, slowProxy := f.startProxy(t), f.startProxy(t, "--master-timeout", "1s")
			client := connect(t, dyingProxy)
			wantGrant(t, client, "LOCK", "lock:k", "t", "PX", longTTL)
			f.wantHolders(t, "lock:k", "t", f.allMasters()...)
			delayed := slowProxy.hold("lock:k", passCount, C, D, E)
			swapReply := sendAsync(connect(t, slowProxy), "GETSET", "lock:k", "v")
			time.Sleep(300 * time.Millisecond) // enough for the messages that may pass
			cutCommands := dyingProxy.hold("lock:k", 0, C)
			unlocked := kit.Do(t, client, "UNLOCK", "lock:k", "t")
			kit.Must(t, dyingProxy.Kill())
			cutCommands.discard()
			t.Logf("UNLOCK: %v, GETSET: %v", unlocked, <-swapReply)
			delayed.discard()
			slowProxy.wantVoting(t)
			if unlocked != any(int64(1)) {
				return
			}
			if reply := kit.Do(t, connect(t, slowProxy), "EXTEND", "lock:k", "t", "PX", longTTL); reply != nil {
				t.Errorf("it was released, and its old owner extends it: %v", reply)
			}
			if holders := f.holders(t, "lock:k", "t"); len(holders) > 2 {
				t.Errorf("it was released, and is on the masters %v", holders)
			}
		})
	}
}

// TestReleasedCopy covers a LOCK that is granted on A and B. Its message to C is delayed, and the
// proxy's connection to C breaks. C loses its data, and gets a copy of the lock. The owner releases
// the lock without reaching B. Then the delayed message arrives at C. If the UNLOCK returned 1, the
// lock does not reappear on B and C.
func TestReleasedCopy(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	p, otherProxy := f.startProxy(t), f.startProxy(t)
	f.lockCatchUpProbe(t, connect(t, otherProxy))
	client := connect(t, p)
	delayedLock := p.links[C].HoldCommands(faultlink.OnlyFirst(1, faultlink.Containing("lock:k")))
	wantGrant(t, client, "LOCK", "lock:k", "t", "PX", longTTL)
	// Wait until C is down: while C counts as voting, an UNLOCK does not reach it.
	_, err := p.WaitLog("\"master down\" master="+p.links[C].Addr(), kit.WaitLimit)
	kit.Must(t, err)
	mustSend(t, f.masters[C], "FLUSHALL")
	f.wantCaughtUp(t, otherProxy, C)
	f.wantHolders(t, "lock:k", "t", A, B, C)
	p.wantVoting(t)
	cutCommands := p.hold("lock:k", 0, B)
	sentAt := unlock(t, client, "lock:k", "t")
	f.wantHolders(t, "lock:k", "t", B)
	delayedLock.Release()
	if time.Since(sentAt) > removalRetention {
		t.Skipf("NOT TESTED: after %v the masters have forgotten the removal", time.Since(sentAt))
	}
	// Nothing reports the arrival, because the sender's connection has closed.
	time.Sleep(agreeTime / 10)
	f.wantHolders(t, "lock:k", "t", B)
	cutCommands.release()
	time.Sleep(agreeTime) // a wrong result would appear by then
	f.wantFree(t, otherProxy, "lock:k")
}
