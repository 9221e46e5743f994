//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// masterChanges lists the possible changes of three masters, with the masters after each change.
var masterChanges = []struct {
	name    string
	masters []int
}{{"added", []int{A, B, C, D}}, {"replaced", []int{A, D, C}}, {"removed", []int{A, B}}}

// TestRemovalDuringMasterChange loses the replies of the masters that a LOCK or SET NX reaches, so
// its client gets NOQUORUM. The client's proxy is stopped, and another proxy changes the masters.
// Soon after the stopped proxy continues, the key is free.
func TestRemovalDuringMasterChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, command := range [][]string{{"LOCK", "lock:k", "lost", "PX", "600000"},
		{"SET", "lock:k", "lost", "NX", "PX", "600000"}} {
		for _, change := range masterChanges {
			for _, reachedMasters := range [][]int{{A, B, C}, {A, B}, {C}} {
				t.Run(fmt.Sprint(command[0], " reaches ", letters(reachedMasters), ", one is ", change.name), func(t *testing.T) {
					t.Parallel()
					f, p, otherProxy := startChangingFleet(t, 4, 2, 3)
					resume := f.loseRepliesAndStop(t, p, reachedMasters, command...)
					if len(reachedMasters) == 2 {
						// The other proxy restores the lock, so that only a ballot can remove it.
						kit.Do(t, connect(t, otherProxy), "LOCKINFO", "lock:k")
						f.wantHolders(t, "lock:k", "lost", A, B, C)
					}
					f.changeMasters(t, otherProxy, change.masters...)
					resume()
					f.wantMasters(t, p, change.masters...)
					wantNotHeld(t, connect(t, otherProxy), "lock:k")
				})
			}
		}
	}
}

// loseRepliesAndStop sends a command about lock:k that reaches only some of the masters A, B and C.
// The proxy gets no reply about the key, so it returns NOQUORUM, and is stopped before it has
// undone anything. resume continues the proxy, with all links working.
func (f *changingFleet) loseRepliesAndStop(t *testing.T, p *proxy, reachedMasters []int, command ...string) (resume func()) {
	t.Helper()
	heldReplies, laterCommands := p.holdReplies("lock:k", reachedMasters...), p.hold("lock:k", 1, reachedMasters...)
	for _, i := range []int{A, B, C} {
		if !contains(reachedMasters, i) {
			laterCommands = append(laterCommands, p.hold("lock:k", 0, i)...)
		}
	}
	reply := sendAsync(connect(t, p), command...)
	heldReplies.wait(t)
	if got := <-reply; !kit.IsNoQuorum(got) {
		t.Fatalf("%v: %v, want NOQUORUM", command, got)
	}
	kit.Must(t, p.Pause())
	heldReplies.discard()
	laterCommands.discard()
	f.wantHolders(t, "lock:k", command[2], reachedMasters...)
	return func() { kit.Must(t, p.Continue()) }
}

// TestRemovalKeepsLaterLock covers a LOCK that got NOQUORUM, and whose proxy is stopped. The LOCK
// has reached only C, or has reached all masters and was removed by FORCEUNLOCK. Before or after a
// change of the masters, another client is granted the lock with the same token. Its lock stays
// when the stopped proxy continues.
func TestRemovalKeepsLaterLock(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, change := range masterChanges {
		for _, reached := range [][]int{{C}, {A, B, C}} {
			for _, grantBefore := range []bool{true, false} {
				t.Run(fmt.Sprint("reaches ", letters(reached), ", one is ", change.name, ", granted before ", grantBefore),
					func(t *testing.T) {
						t.Parallel()
						f, p, otherProxy := startChangingFleet(t, 4, 2, 3)
						resume := f.loseRepliesAndStop(t, p, reached, "LOCK", "lock:k", "same", "PX", "600000")
						rival, third := connect(t, otherProxy), connect(t, otherProxy)
						grant := func() {
							if len(reached) > 1 {
								kit.Do(t, rival, "FORCEUNLOCK", "lock:k")
							}
							if awaitGrant(t, rival, time.Now().Add(kit.WaitLimit), "LOCK", "lock:k", "same", "PX",
								"600000").IsZero() {
								t.Fatal("the rival is not granted the lock")
							}
						}
						if grantBefore {
							grant()
						}
						f.changeMasters(t, otherProxy, change.masters...)
						if !grantBefore {
							grant()
						}
						resume()
						f.wantMasters(t, p, change.masters...)
						for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
							if got := kit.Do(t, third, "LOCK", "lock:k", "third", "PX", "60000"); got != nil &&
								!kit.IsNoQuorum(got) {
								t.Fatalf("a third client's LOCK: %v", got)
							}
						}
						kit.Eventually(t, func() error {
							if got := kit.Do(t, rival, "EXTEND", "lock:k", "same", "PX", "600000"); !isGrant(got) {
								return fmt.Errorf("EXTEND: %v", got)
							}
							return nil
						})
						kit.Want(t, rival, int64(1), "UNLOCK", "lock:k", "same")
						wantNotHeld(t, connect(t, p), "lock:k")
					})
			}
		}
	}
}
