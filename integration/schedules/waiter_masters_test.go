//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestWaiterDisconnectDuringMasterChange loses the replies to the first attempt of a waiting LOCK.
// The attempt has reached the masters. Another proxy changes the masters. The client disconnects
// before the next attempt has a result, or the BLOCK time passes. Soon the lock is free.
func TestWaiterDisconnectDuringMasterChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for _, fence := range []bool{false, true} {
		for _, change := range masterChanges {
			for _, leaveTime := range []string{"before the change", "after the change", "when its proxy continues",
				"soon after", "its time has passed"} {
				t.Run(fmt.Sprint("fence ", fence, ", one is ", change.name, ", leaves: ", leaveTime), func(t *testing.T) {
					t.Parallel()
					f, p, otherProxy := startChangingFleet(t, 4, 2, 3)
					command := []string{"LOCK", "lock:k", "*", "PX", "600000", "BLOCK", "20000"}
					if leaveTime == "its time has passed" {
						command[6] = "4000"
					}
					if fence {
						command = append(command, "FENCE")
					}
					waiter := connect(t, p)
					heldReplies, laterCommands := p.holdReplies("lock:k", A, B, C), p.hold("lock:k", 1, A, B, C)
					reply := sendAsync(waiter, command...)
					heldReplies.wait(t)
					time.Sleep(2500 * time.Millisecond) // the proxy gives up the attempt
					kit.Must(t, p.Pause())
					heldReplies.discard()
					laterCommands.discard()
					leaveAt := func(moment string) {
						if leaveTime == moment {
							kit.Must(t, waiter.Close())
						}
					}
					leaveAt("before the change")
					f.changeMasters(t, otherProxy, change.masters...)
					leaveAt("after the change")
					kit.Must(t, p.Continue())
					leaveAt("when its proxy continues")
					time.Sleep(100 * time.Millisecond) // the next step may come after any delay
					leaveAt("soon after")
					f.wantMasters(t, p, change.masters...)
					select {
					case got := <-reply:
						t.Logf("the waiter got: %v", got)
						if fields, granted := got.([]any); granted {
							kit.Want(t, connect(t, otherProxy), int64(1), "UNLOCK", "lock:k", fmt.Sprint(fields[3]))
						}
					case <-time.After(kit.WaitLimit):
						t.Fatal("the waiter gets no reply")
					}
					wantNotHeld(t, connect(t, otherProxy), "lock:k")
				})
			}
		}
	}
}
