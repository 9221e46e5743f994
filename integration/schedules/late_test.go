//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestLateLockAfterARemoval takes a lock whose key was just removed by ballot, so the LOCK uses a
// ballot, too. Its write reaches A. Another proxy reads the write, removes it, and grants the lock
// to a rival. The owner's proxy gets the missing replies too late for its client. It undoes its own
// write, but not the rival's lock.
//
// The test does not know which message is the write, so it varies the number of messages that pass.
func TestLateLockAfterARemoval(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	slowProxy, otherProxy := f.startProxy(t, "--master-timeout", "2s"), f.startProxy(t, "--master-timeout", "2s")
	removals := 0
	for passCount := range 6 {
		for _, lock := range lateLocks() {
			l := &lateLock{fleet: f, slowProxy: slowProxy, otherProxy: otherProxy, key: fmt.Sprintf("lock:%s:%d", lock[0], passCount)}
			if l.run(t, lock, passCount) {
				removals++
			}
		}
	}
	if removals == 0 {
		t.Error("no lock was read and removed before its own proxy was sure of it")
	}
}

// lateLocks returns the commands that take a lock with the token "late", without the key.
func lateLocks() [][]string {
	return [][]string{{"LOCK", "late", "PX", longTTL}, {"SET", "late", "NX", "PX", longTTL}}
}

// lateLock is a lock whose commands to B and C are delayed.
type lateLock struct {
	fleet                 *fleet
	slowProxy, otherProxy *proxy
	key                   string
}

// run reports whether the late lock was removed, and granted to the rival, before its own proxy had
// the delayed replies.
func (l *lateLock) run(t *testing.T, lock []string, passCount int) (removed bool) {
	t.Helper()
	owner, rival := connect(t, l.slowProxy), connect(t, l.otherProxy)
	wantGrant(t, owner, "LOCK", l.key, "first", "PX", longTTL)
	// Another proxy releases the lock by ballot.
	kit.Want(t, rival, int64(1), "UNLOCK", l.key, "first")

	delayed := l.slowProxy.hold(l.key, passCount, B, C)
	reply := sendAsync(owner, append([]string{lock[0], l.key}, lock[1:]...)...)
	if !l.awaitHolder(t, A) {
		delayed.release()
		t.Logf("%s, %d messages pass: %v", lock[0], passCount, <-reply)
		return false
	}
	removed = kit.Do(t, rival, "UNLOCK", l.key, "late") == any(int64(1))
	rivalGranted := isGrant(kit.Do(t, rival, "LOCK", l.key, "rival", "PX", longTTL))
	time.Sleep(800 * time.Millisecond) // longer than the limit of a round
	delayed.release()
	t.Logf("%s, %d messages pass: %v; seen and removed: %v; the rival's granted: %v", lock[0], passCount, <-reply, removed, rivalGranted)
	time.Sleep(300 * time.Millisecond) // by then, all undos are done
	if rivalGranted {
		kit.Want(t, rival, int64(1), "UNLOCK", l.key, "rival")
	}
	return removed && rivalGranted
}

// awaitHolder waits up to 800 ms until a master has the late lock, and reports whether the master
// has it.
func (l *lateLock) awaitHolder(t *testing.T, master int) bool {
	t.Helper()
	for deadline := time.Now().Add(800 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if contains(l.fleet.holders(t, l.key, "late"), master) {
			return true
		}
	}
	return false
}
