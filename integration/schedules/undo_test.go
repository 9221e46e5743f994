//go:build integration

package schedules

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest/faultlink"
	"redlock-proxy/quorum/vote"
)

// releaseIfOwn is the usual script to release a lock at a single Redis.
const releaseIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// TestUndoOfLateSetXX takes a lock on A, B and C. Another client's SET XX arrives late at A and B
// and never at the other masters, so it is undone. A rival is not granted the lock too early.
func TestUndoOfLateSetXX(t *testing.T) {
	t.Parallel()
	for passCount := range 3 {
		t.Run(fmt.Sprintf("the rest has %d commands of it", passCount), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			owner, slowProxy := f.startProxy(t), f.startProxy(t, "--master-timeout", "1s")
			rival := connect(t, owner)
			validUntil := f.takeLockOn(t, owner, []int{A, B, C}, connect(t, owner), "LOCK", "lock:k", "t", "PX", "10000")
			for _, i := range []int{A, B} {
				slowProxy.links[i].DelayCommands(faultlink.OnlyFirst(passCount+1, faultlink.Containing("lock:k")), 350*time.Millisecond)
			}
			slowProxy.hold("lock:k", passCount, C, D, E)
			reply := kit.Do(t, connect(t, slowProxy), "SET", "lock:k", "v", "XX")
			t.Logf("SET XX: %v, %v before the lock ends", reply, time.Until(validUntil))
			if at := awaitGrant(t, rival, validUntil, "LOCK", "lock:k", "rival", "PX", "10000"); !at.IsZero() &&
				at.Before(validUntil) {
				t.Errorf("the rival was granted the lock %v too early", validUntil.Sub(at))
			}
		})
	}
}

// TestSameValue takes a lock with a plain value. Another client sends the same command through
// another proxy, which loses the replies of C, D and E. This does not change the lock: a third
// client is refused.
func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, lease := range leases() {
		t.Run(lease.name, func(t *testing.T) {
			f := startFleet(t, 5)
			otherProxy, owner := f.startProxy(t), f.startProxy(t)
			f.mustSetOnAll(t, owner, lease)
			lostReplies := otherProxy.holdReplies("lock:k", C, D, E)
			reply := kit.Do(t, connect(t, otherProxy), lease.setCommand("1")...)
			if isGrant(reply) {
				t.Fatalf("the same command of another client: %v", reply)
			}
			t.Logf("the same command of another client: %v", reply)
			lostReplies.discard()
			otherProxy.wantVoting(t)
			f.wantUnchanged(t, owner, lease)
		})
	}
}

// TestSameValuePause repeats TestSameValue without lost replies. Instead, the other proxy is
// stopped in the middle of its attempt, for longer than a round may take. When it continues, the
// replies of all masters have arrived, but too late to grant anything.
func TestSameValuePause(t *testing.T) {
	t.Parallel()
	const rounds = 20
	f := startFleet(t, 5)
	otherProxy, owner := f.startProxy(t), f.startProxy(t)
	for round := range rounds {
		lease := leases()[round%2]
		lease.key = fmt.Sprint("lock:k", round)
		f.mustSetOnAll(t, owner, lease)
		delayed := otherProxy.hold(lease.key, 0, f.allMasters()...)
		reply := sendAsync(connect(t, otherProxy), lease.setCommand("1")...)
		delayed.wait(t)
		kit.Must(t, otherProxy.Signal(syscall.SIGSTOP))
		delayed.release()
		time.Sleep(vote.RoundLimit + vote.RoundLimit/10) // longer than a round
		kit.Must(t, otherProxy.Signal(syscall.SIGCONT))
		if got := <-reply; isGrant(got) {
			t.Fatalf("round %d: the same command of another client: %v", round, got)
		}
		otherProxy.wantVoting(t)
		if f.wantUnchanged(t, owner, lease); t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// TestStaleRelease delivers the first owner's release at C, D and E after the first owner's lease
// has expired. By then the second owner has the lock with the same value. The release arrives late,
// or the proxy repeats it. The second owner keeps the lock.
func TestStaleRelease(t *testing.T) {
	t.Parallel()
	deliveries := map[string]func(holds){"late": holds.release, "owed": holds.discard}
	releases := map[string][]string{"UNLOCK": {"UNLOCK", "lock:k", "1"},
		"script": {"EVAL", releaseIfOwn, "1", "lock:k", "1"}}
	for delivery, arrive := range deliveries {
		for name, release := range releases {
			t.Run(name+" "+delivery, func(t *testing.T) {
				t.Parallel()
				f := startFleet(t, 5)
				first, second := f.startProxy(t), f.startProxy(t)
				shortLease := lease{key: "lock:k", options: []string{"PX", "5000"}}
				f.mustSetOnAll(t, first, shortLease)
				cutMessages := first.cutOff(C, D, E)
				t.Logf("the first owner's release: %v", kit.Do(t, connect(t, first), release...))
				f.wantHolders(t, "lock:k", "1") // no master has the lock
				longLease := lease{key: "lock:k", options: []string{"PX", "60000"}}
				f.mustSetOnAll(t, second, longLease)
				arrive(cutMessages)
				first.wantVoting(t)
				time.Sleep(300 * time.Millisecond) // late messages arrive now
				f.wantUnchanged(t, second, longLease)
			})
		}
	}
}

// lease is a lock taken by SET NX.
type lease struct {
	name, key string
	options   []string
}

func leases() []lease {
	return []lease{{"without a time", "lock:k", nil}, {"PX 60000", "lock:k", []string{"PX", "60000"}}}
}

func (l lease) setCommand(value string) []string {
	return append([]string{"SET", l.key, value, "NX"}, l.options...)
}

// mustSetOnAll sets the key to the value 1 on all masters.
func (f *fleet) mustSetOnAll(t *testing.T, p *proxy, l lease) {
	t.Helper()
	kit.Want(t, connect(t, p), "OK", l.setCommand("1")...)
	f.wantHolders(t, l.key, "1", f.allMasters()...)
}

// wantUnchanged checks that the value 1 is still on all masters, and that a third client is
// refused.
func (f *fleet) wantUnchanged(t *testing.T, p *proxy, l lease) {
	t.Helper()
	if holders := f.holders(t, l.key, "1"); len(holders) != len(f.masters) {
		t.Errorf("%s is left on the masters %v alone", l.key, holders)
	}
	if reply := kit.Do(t, connect(t, p), l.setCommand("2")...); reply != nil {
		t.Errorf("a third client: %v; want nil", reply)
	}
}
