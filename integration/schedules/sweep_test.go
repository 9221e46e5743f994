//go:build integration

package schedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestSweepMeetsALateTake: a SET NX has come to A and B when its proxy dies; its message to C is
// late. Another proxy finds what is on A and B to be nobody's, and is about to remove it when that
// message arrives, so that a majority holds it. A third replaces the value, and is told so: that
// stands, however late the removal comes.
//
// Which message of the second proxy is the removal is not for this test to know, so it has more or
// fewer of them pass.
func TestSweepMeetsALateTake(t *testing.T) {
	t.Parallel()
	for passed := range 5 {
		t.Run(fmt.Sprintf("%d messages of the finder pass", passed), func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, 5)
			dying, finder, third := f.proxy(t), f.proxy(t), f.proxy(t)
			const key = "lock:k"
			time.Sleep(compares) // else the finder may find it before it is asked
			dying.hold(key, 1, A, B)
			away, toC := dying.hold(key, 0, D, E), dying.hold(key, 0, C)
			if reply := kit.Do(t, connect(t, dying), "SET", key, "old", "NX"); !isNoQuorum(reply) {
				t.Fatalf("SET NX: %v", reply)
			}
			kit.Must(t, dying.Kill())
			away.discard()
			f.wantHolders(t, key, "old", A, B)

			late := finder.hold(key, passed, A, B)
			doing(connect(t, finder), "GET", key)
			time.Sleep(1500 * time.Millisecond) // a sweep looks twice
			toC.release()
			time.Sleep(100 * time.Millisecond) // what must not happen has time to
			client := connect(t, third)
			if reply := kit.Do(t, client, "GETSET", key, "new"); reply != "old" {
				t.Logf("what was on A and B is gone already: %v", reply)
			}
			late.release()
			time.Sleep(300 * time.Millisecond) // what must not happen has time to
			kit.Want(t, client, "new", "GET", key)
		})
	}
}
