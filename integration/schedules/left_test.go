//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// marks is what the names of the marks of proxies that wait have in them.
const marks = "redlock-proxy:waits:"

// wantMarks wants so many marks on each master soon.
func (f *fleet) wantMarks(t *testing.T, n int) {
	t.Helper()
	for _, master := range f.masters {
		client := kit.Dial(t, master.Addr())
		kit.Soon(t, func() error {
			if found, _ := kit.Do(t, client, "KEYS", marks+"*").([]any); len(found) != n {
				return fmt.Errorf("%s has the marks %v, want %d", master.Addr(), found, n)
			}
			return nil
		})
	}
}

// TestLeftLate: a proxy leaves a lock to another one that waits, and no master is told of that before the other one has taken the lock, which it
// finds free: what is behind a release may be late. Then it finds no mark, nobody waits for it, and the lock passes on as ever.
func TestLeftLate(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	here, there := f.proxy(t, "--master-timeout", "10s"), f.proxy(t)
	holder, waiter := connect(t, here), connect(t, there)
	take := func(client *redistest.Client, token string) <-chan any {
		return doing(client, "LOCK", "lock:k", token, "PX", longTime, "BLOCK", "600000")
	}
	for round := range 3 {
		if got := <-take(holder, "holder"); !isGrant(got) {
			t.Fatalf("round %d: %v", round, got)
		}
		granted := take(waiter, "waiter")
		f.wantMarks(t, 1)
		time.Sleep(20 * time.Millisecond) // others are not asked for again and again
		late := here.hold(marks, 0, f.everyMaster()...)
		released := doing(holder, "UNLOCK", "lock:k", "holder")
		late.wait(t)
		if got := <-granted; !isGrant(got) {
			t.Fatalf("round %d: %v", round, got)
		}
		f.wantMarks(t, 0)
		f.wantHolders(t, "lock:k", "waiter", f.everyMaster()...)
		late.release()
		if got := <-released; got != any(int64(1)) {
			t.Fatalf("round %d: UNLOCK answered %v", round, got)
		}
		kit.Want(t, waiter, int64(1), "UNLOCK", "lock:k", "waiter")
	}
}
