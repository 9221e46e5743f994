//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestSweepDuringLateTake kills a proxy whose SET NX has reached A and B, while its message to C is
// delayed. Another proxy finds that the value on A and B has no majority, and is about to remove
// it. Then the delayed message arrives, so that a majority has the value. A third proxy replaces
// the value, and confirms the new value to its client. The new value stays, however late the
// removal arrives.
//
// The test varies the number of messages that pass, because it does not know which message is the
// removal.
func TestSweepDuringLateTake(t *testing.T) {
	t.Parallel()
	for passCount := range 5 {
		t.Run(fmt.Sprintf("%d messages of the finder pass", passCount), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			dyingProxy := f.startProxy(t)
			finder, third := f.startProxyWithoutComparing(t), f.startProxyWithoutComparing(t)
			const key = "lock:k"
			dyingProxy.hold(key, 1, A, B)
			notReached, lateTake := dyingProxy.hold(key, 0, D, E), dyingProxy.hold(key, 0, C)
			if reply := kit.Do(t, connect(t, dyingProxy), "SET", key, "old", "NX"); !kit.IsNoQuorum(reply) {
				t.Fatalf("SET NX: %v", reply)
			}
			kit.Must(t, dyingProxy.Kill())
			notReached.discard()
			f.wantHolders(t, key, "old", A, B)

			lateRemoval := finder.hold(key, passCount, A, B)
			sendAsync(connect(t, finder), "GET", key)
			time.Sleep(1500 * time.Millisecond) // a sweep reads twice
			lateTake.release()
			time.Sleep(100 * time.Millisecond) // a wrong result would appear by then
			client := connect(t, third)
			if reply := kit.Do(t, client, "GETSET", key, "new"); reply != "old" {
				t.Logf("the value on A and B is already removed: %v", reply)
			}
			lateRemoval.release()
			time.Sleep(300 * time.Millisecond) // a wrong result would appear by then
			kit.Want(t, client, "new", "GET", key)
		})
	}
}
