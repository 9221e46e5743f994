//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestWaiterLeavesAfterAChangeOfMasters: the first attempt of a waiting LOCK has reached the
// masters, and its replies are lost. Another proxy changes the masters. The client disconnects
// before the next attempt has a result, or its BLOCK time passes. Soon the lock is free.
func TestWaiterLeavesAfterAChangeOfMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, fence := range []bool{false, true} {
		for _, change := range changes {
			for _, leaves := range []string{"before the change", "after the change", "when its proxy goes on",
				"soon after", "its time is over"} {
				t.Run(fmt.Sprint("fence ", fence, ", one is ", change.what, ", leaves: ", leaves), func(t *testing.T) {
					t.Parallel()
					f, p, other := startChanging(t, 4, 2, 3)
					command := []string{"LOCK", "lock:k", "*", "PX", "600000", "BLOCK", "20000"}
					if leaves == "its time is over" {
						command[6] = "4000"
					}
					if fence {
						command = append(command, "FENCE")
					}
					waiter := connect(t, p)
					answers, rest := p.holdAnswers("lock:k", A, B, C), p.hold("lock:k", 1, A, B, C)
					reply := sendAsync(waiter, command...)
					answers.wait(t)
					time.Sleep(2500 * time.Millisecond) // the try is given up
					kit.Must(t, p.Pause())
					answers.discard()
					rest.discard()
					leave := func(when string) {
						if leaves == when {
							kit.Must(t, waiter.Close())
						}
					}
					leave("before the change")
					f.change(t, other, change.masters...)
					leave("after the change")
					kit.Must(t, p.Continue())
					leave("when its proxy goes on")
					time.Sleep(100 * time.Millisecond) // the next step may come after any delay
					leave("soon after")
					f.wantMasters(t, p, change.masters...)
					select {
					case got := <-reply:
						t.Logf("the waiter was told: %v", got)
						if fields, granted := got.([]any); granted {
							kit.Want(t, connect(t, other), int64(1), "UNLOCK", "lock:k", fmt.Sprint(fields[3]))
						}
					case <-time.After(kit.Patience):
						t.Fatal("the waiter is not answered")
					}
					awaitNotHeld(t, f, other, "lock:k")
				})
			}
		}
	}
}
