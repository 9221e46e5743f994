//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// awaitNotHeld is wantNotHeld with a longer wait, because catch-ups take long on a busy machine.
func awaitNotHeld(t *testing.T, f *changing, rival *proxy, key string) {
	t.Helper()
	began, client := time.Now(), connect(t, rival)
	if at := firstGrant(t, client, began.Add(10*time.Second), "LOCK", key, "rival", "PX", "60000"); at.IsZero() {
		t.Errorf("%s is not free, though no client holds it: %v", key, kit.Do(t, client, "LOCKINFO", key))
	} else {
		t.Logf("free after %v", at.Sub(began).Round(time.Millisecond))
	}
}

// changes lists the possible changes of three masters, with the masters after each change.
var changes = []struct {
	what    string
	masters []int
}{{"added", []int{A, B, C, D}}, {"replaced", []int{A, D, C}}, {"removed", []int{A, B}}}

// TestRemovalOverAChangeOfMasters: a lock reaches masters, but their replies are lost: the client
// gets NOQUORUM. Its proxy is stopped, and another proxy changes the masters. Soon after the first
// proxy continues, the key is free.
func TestRemovalOverAChangeOfMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, command := range [][]string{{"LOCK", "lock:k", "lost", "PX", "600000"},
		{"SET", "lock:k", "lost", "NX", "PX", "600000"}} {
		for _, change := range changes {
			for _, reached := range [][]int{{A, B, C}, {A, B}, {C}} {
				t.Run(fmt.Sprint(command[0], " reaches ", names(reached), ", one is ", change.what), func(t *testing.T) {
					t.Parallel()
					f, p, other := startChanging(t, 4, 2, 3)
					goOn := f.loseAnswersAndStop(t, p, reached, command...)
					if len(reached) == 2 { // the other proxy restores it, so that a ballot alone removes it
						kit.Do(t, connect(t, other), "LOCKINFO", "lock:k")
						f.wantHolders(t, "lock:k", "lost", A, B, C)
					}
					f.change(t, other, change.masters...)
					goOn()
					f.wantMasters(t, p, change.masters...)
					awaitNotHeld(t, f, other, "lock:k")
				})
			}
		}
	}
}

// loseAnswersAndStop sends a command about lock:k that reaches only the given ones of the masters
// A, B and C. The proxy gets no reply about the key, so it returns NOQUORUM, and is stopped before
// it has undone anything. goOn continues the proxy, with all links working.
func (f *changing) loseAnswersAndStop(t *testing.T, p *proxy, reached []int, command ...string) (goOn func()) {
	t.Helper()
	answers, rest := p.holdAnswers("lock:k", reached...), p.hold("lock:k", 1, reached...)
	for _, i := range []int{A, B, C} {
		if !has(reached, i) {
			rest = append(rest, p.hold("lock:k", 0, i)...)
		}
	}
	reply := sendAsync(connect(t, p), command...)
	answers.wait(t)
	if got := <-reply; !isNoQuorum(got) {
		t.Fatalf("%v: %v, want NOQUORUM", command, got)
	}
	kit.Must(t, p.Pause())
	answers.discard()
	rest.discard()
	f.wantHolders(t, "lock:k", command[2], reached...)
	return func() { kit.Must(t, p.Continue()) }
}

// TestRemovalLeavesWhatCameSince: a LOCK that got NOQUORUM has reached only C, or has reached all
// masters and was removed by FORCEUNLOCK. Before or after a change of the masters, another client
// is granted the lock with the same token. Its lock stays when the first proxy continues.
func TestRemovalLeavesWhatCameSince(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, change := range changes {
		for _, reached := range [][]int{{C}, {A, B, C}} {
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprint("reaches ", names(reached), ", one is ", change.what, ", granted before ", before),
					func(t *testing.T) {
						t.Parallel()
						f, p, other := startChanging(t, 4, 2, 3)
						goOn := f.loseAnswersAndStop(t, p, reached, "LOCK", "lock:k", "same", "PX", "600000")
						rival, third := connect(t, other), connect(t, other)
						grant := func() {
							if len(reached) > 1 {
								kit.Do(t, rival, "FORCEUNLOCK", "lock:k")
							}
							if firstGrant(t, rival, time.Now().Add(10*time.Second), "LOCK", "lock:k", "same", "PX",
								"60000").IsZero() {
								t.Fatal("the rival is not granted the lock")
							}
						}
						if before {
							grant()
						}
						f.change(t, other, change.masters...)
						if !before {
							grant()
						}
						goOn()
						f.wantMasters(t, p, change.masters...)
						for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
							if got := kit.Do(t, third, "LOCK", "lock:k", "third", "PX", "60000"); got != nil &&
								!isNoQuorum(got) {
								t.Fatalf("a third client's LOCK: %v", got)
							}
						}
						kit.Soon(t, func() error {
							if got := kit.Do(t, rival, "EXTEND", "lock:k", "same", "PX", "60000"); !isGrant(got) {
								return fmt.Errorf("EXTEND: %v", got)
							}
							return nil
						})
						kit.Want(t, rival, int64(1), "UNLOCK", "lock:k", "same")
						awaitNotHeld(t, f, p, "lock:k")
					})
			}
		}
	}
}
