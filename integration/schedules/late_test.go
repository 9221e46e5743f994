//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestLateLockAfterARemoval: a key was just removed by ballot, so a LOCK of it is a ballot, too.
// Its write reaches A. Another proxy reads the write and removes it, and grants the lock to a
// rival. The first proxy gets the other replies too late for its client, and undoes its own write,
// but not the rival's lock.
//
// The test does not know which message is the write, so it varies the number of messages that pass.
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

// lateLocks returns the commands that take a lock with the token "late", without the key.
func lateLocks() [][]string {
	return [][]string{{"LOCK", "late", "PX", longTime}, {"SET", "late", "NX", "PX", longTime}}
}

// lateLock is a lock that is granted too late.
type lateLock struct {
	fleet       *fleet
	late, other *proxy
	key         string
}

// run reports whether the late lock was removed while it was being taken.
func (l *lateLock) run(t *testing.T, lock []string, passed int) (met bool) {
	t.Helper()
	owner, rival := connect(t, l.late), connect(t, l.other)
	wantGrant(t, owner, "LOCK", l.key, "first", "PX", longTime)
	kit.Want(t, rival, int64(1), "UNLOCK", l.key, "first") // another proxy: by ballot

	held := l.late.hold(l.key, passed, B, C)
	reply := sendAsync(owner, append([]string{lock[0], l.key}, lock[1:]...)...)
	if !l.awaitLate(t, A) {
		held.release()
		t.Logf("%s, %d messages pass: %v", lock[0], passed, <-reply)
		return false
	}
	met = kit.Do(t, rival, "UNLOCK", l.key, "late") == any(int64(1))
	granted := isGrant(kit.Do(t, rival, "LOCK", l.key, "rival", "PX", longTime))
	time.Sleep(800 * time.Millisecond) // longer than the limit of a round
	held.release()
	t.Logf("%s, %d messages pass: %v; seen and removed: %v; the rival's granted: %v", lock[0], passed, <-reply, met, granted)
	time.Sleep(300 * time.Millisecond) // by then, all undos are done
	if granted {
		kit.Want(t, rival, int64(1), "UNLOCK", l.key, "rival")
	}
	return met && granted
}

// awaitLate waits up to 400 ms until a master has the late lock, and reports whether it has.
func (l *lateLock) awaitLate(t *testing.T, master int) bool {
	t.Helper()
	for end := time.Now().Add(400 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if has(l.fleet.holders(t, l.key, "late"), master) {
			return true
		}
	}
	return false
}
