//go:build integration

package schedules

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest/faultlink"
)

// releaseIfOwn is the usual script to release a lock at a single Redis.
const releaseIfOwn = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// TestUndoShortens: a lock is on A, B and C. Another client's SET XX arrives late at A and B and
// never at the other masters, so it is undone. A rival is not granted the lock too early.
func TestUndoShortens(t *testing.T) {
	t.Parallel()
	for passed := range 3 {
		t.Run(fmt.Sprintf("the rest has %d commands of it", passed), func(t *testing.T) {
			f := startFleet(t, 5)
			owner, patient := f.proxy(t), f.proxy(t, "--master-timeout", "1s")
			rival := connect(t, owner)
			until := f.grantOn(t, owner, []int{A, B, C}, connect(t, owner), "LOCK", "lock:k", "t", "PX", "3000")
			for _, i := range []int{A, B} {
				patient.links[i].DelayCommands(faultlink.First(passed+1, faultlink.Naming("lock:k")), 350*time.Millisecond)
			}
			patient.hold("lock:k", passed, C, D, E)
			reply := kit.Do(t, connect(t, patient), "SET", "lock:k", "v", "XX")
			t.Logf("SET XX: %v, %v before the lock ends", reply, time.Until(until))
			if at := firstGrant(t, rival, until, "LOCK", "lock:k", "rival", "PX", "10000"); !at.IsZero() &&
				at.Before(until) {
				t.Errorf("the rival was granted the lock %v too early", until.Sub(at))
			}
		})
	}
}

// TestSameValue: the owner takes a lock with a plain value. Another client sends the same command
// through another proxy, which loses the replies of C, D and E. This does not change the lock: a
// third client is refused.
func TestSameValue(t *testing.T) {
	t.Parallel()
	for _, lease := range leases() {
		t.Run(lease.name, func(t *testing.T) {
			f := startFleet(t, 5)
			other, owner := f.proxy(t), f.proxy(t)
			f.setOnAll(t, owner, lease)
			lost := other.holdAnswers("lock:k", C, D, E)
			reply := kit.Do(t, connect(t, other), lease.set("1")...)
			if isGrant(reply) {
				t.Fatalf("the same try of another: %v", reply)
			}
			t.Logf("the same try of another: %v", reply)
			lost.discard()
			other.wantVoting(t)
			f.wantStands(t, owner, lease)
		})
	}
}

// TestSameValuePause: TestSameValue without faults of masters: the second proxy is stopped for a
// while in the middle of its attempt.
func TestSameValuePause(t *testing.T) {
	t.Parallel()
	const rounds = 20
	f := startFleet(t, 5)
	other, owner := f.proxy(t), f.proxy(t)
	for round := range rounds {
		lease := leases()[round%2]
		lease.key = fmt.Sprint("lock:k", round)
		f.setOnAll(t, owner, lease)
		late := other.hold(lease.key, 0, f.allMasters()...)
		reply := sendAsync(connect(t, other), lease.set("1")...)
		late.wait(t)
		kit.Must(t, other.Signal(syscall.SIGSTOP))
		late.release()
		time.Sleep(300 * time.Millisecond) // longer than the proxy waits for a master
		kit.Must(t, other.Signal(syscall.SIGCONT))
		if got := <-reply; isGrant(got) {
			t.Fatalf("round %d: the same try of another: %v", round, got)
		}
		other.wantVoting(t)
		if f.wantStands(t, owner, lease); t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

// TestStaleRelease: the first owner's release arrives at C, D and E after its lease has expired
// there, when the second owner has the lock with the same value. It arrives late, or the proxy
// repeats it. The second owner keeps the lock.
func TestStaleRelease(t *testing.T) {
	t.Parallel()
	endings := map[string]func(holds){"late": holds.release, "owed": holds.discard}
	releases := map[string][]string{"UNLOCK": {"UNLOCK", "lock:k", "1"},
		"script": {"EVAL", releaseIfOwn, "1", "lock:k", "1"}}
	for ending, arrive := range endings {
		for name, release := range releases {
			t.Run(name+" "+ending, func(t *testing.T) {
				t.Parallel()
				f := startFleet(t, 5)
				first, second := f.proxy(t), f.proxy(t)
				brief := lease{key: "lock:k", options: []string{"PX", "1000"}}
				f.setOnAll(t, first, brief)
				away := first.cutOff(C, D, E)
				t.Logf("the first owner's release: %v", kit.Do(t, connect(t, first), release...))
				f.wantHolders(t, "lock:k", "1") // on no master any more
				long := lease{key: "lock:k", options: []string{"PX", "60000"}}
				f.setOnAll(t, second, long)
				arrive(away)
				first.wantVoting(t)
				time.Sleep(300 * time.Millisecond) // late messages arrive now
				f.wantStands(t, second, long)
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

func (l lease) set(value string) []string {
	return append([]string{"SET", l.key, value, "NX"}, l.options...)
}

// setOnAll sets the key to the value 1 on all masters.
func (f *fleet) setOnAll(t *testing.T, p *proxy, l lease) {
	t.Helper()
	kit.Want(t, connect(t, p), "OK", l.set("1")...)
	f.wantHolders(t, l.key, "1", f.allMasters()...)
}

// wantStands checks that the value 1 is still on all masters, and that a third client is refused.
func (f *fleet) wantStands(t *testing.T, p *proxy, l lease) {
	t.Helper()
	if holders := f.holders(t, l.key, "1"); len(holders) != len(f.masters) {
		t.Errorf("%s is left on the masters %v alone", l.key, holders)
	}
	if reply := kit.Do(t, connect(t, p), l.set("2")...); reply != nil {
		t.Errorf("a third: %v; want nil", reply)
	}
}
