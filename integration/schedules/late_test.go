//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestLateLockAfterARemoval: the key was removed by ballot a moment ago, so a lock of it is one,
// too. What it writes reaches A, is seen and removed through another proxy, and a rival is granted
// the lock there. When the first proxy hears of the rest it is too late for its client, and it
// takes back what it wrote: not the rival's lock.
//
// Which message is the one that writes is not for this test to know, so it has more or fewer of
// them pass.
func TestLateLockAfterARemoval(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	late, other := f.proxy(t, "--master-timeout", "2s"), f.proxy(t, "--master-timeout", "2s")
	met := 0
	for passed := range 6 {
		for _, lock := range lateLocks() {
			l := &lateLock{fleet: f, late: late, other: other, key: fmt.Sprintf("lock:%s:%d", lock[0], passed)}
			if l.run(t, lock, passed) {
				met++
			}
		}
	}
	if met == 0 {
		t.Error("no lock was seen, and removed, before its own proxy knew of it")
	}
}

// lateLocks take "lock:KEY" for "late".
func lateLocks() [][]string {
	return [][]string{{"LOCK", "late", "PX", longTime}, {"SET", "late", "NX", "PX", longTime}}
}

// lateLock is a lock that comes late.
type lateLock struct {
	fleet       *fleet
	late, other *proxy
	key         string
}

// run reports whether the late lock was removed in the midst of it.
func (l *lateLock) run(t *testing.T, lock []string, passed int) (met bool) {
	t.Helper()
	owner, rival := connect(t, l.late), connect(t, l.other)
	wantGrant(t, owner, "LOCK", l.key, "first", "PX", longTime)
	kit.Want(t, rival, int64(1), "UNLOCK", l.key, "first") // another proxy: by ballot

	held := l.late.hold(l.key, passed, B, C)
	reply := doing(owner, append([]string{lock[0], l.key}, lock[1:]...)...)
	if !l.isOn(t, A) {
		held.release()
		t.Logf("%s, %d messages pass: %v", lock[0], passed, <-reply)
		return false
	}
	met = kit.Do(t, rival, "UNLOCK", l.key, "late") == any(int64(1))
	granted := isGrant(kit.Do(t, rival, "LOCK", l.key, "rival", "PX", longTime))
	time.Sleep(800 * time.Millisecond) // over the limit of a round
	held.release()
	t.Logf("%s, %d messages pass: %v; seen and removed: %v; the rival's granted: %v", lock[0], passed, <-reply, met, granted)
	time.Sleep(300 * time.Millisecond) // what is to be taken back is
	if granted {
		kit.Want(t, rival, int64(1), "UNLOCK", l.key, "rival")
	}
	return met && granted
}

// isOn waits a moment for a master to hold the late lock; it may never.
func (l *lateLock) isOn(t *testing.T, master int) bool {
	t.Helper()
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if has(l.fleet.holders(t, l.key, "late"), master) {
			return true
		}
	}
	return false
}
