//go:build integration

package schedules

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestReplyOrderInPipeline takes or extends a lock, and in the same pipeline sends a command that
// reaches no master. The proxy sends the validity before it replies to the second command, because
// the lease is already running.
func TestReplyOrderInPipeline(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	p, otherProxy := f.startProxy(t, "--master-timeout", "1m"), f.startProxy(t)
	n := 0
	for _, first := range [][]string{{"LOCK", "lock:a", "me", "PX", "60000"},
		{"LOCK", "lock:a", "me", "PX", "60000", "AT"}, {"EXTEND", "lock:a", "me", "PX", "60000"}} {
		for _, second := range [][]string{
			{"LOCK", "", "me", "PX", "60000"}, {"EXTEND", "", "me", "PX", "60000"}, {"UNLOCK", "", "me"}, {"FENCE", ""},
			{"GET", ""}, {"SET", "", "v", "NX"}, {"EVAL", releaseIfOwn, "1", "", "me"}, {"LOCKINFO", ""},
		} {
			n++
			// Each pair uses a new key, so that no leftover of the last pair delays it.
			key := fmt.Sprintf("lock:slow%03d", n)
			second[slices.Index(second, "")] = key
			if first[0] == "EXTEND" {
				wantGrant(t, connect(t, otherProxy), "LOCK", "lock:a", "me", "PX", "60000")
			}
			delayed, client := p.hold(key, 0, f.allMasters()...), connect(t, p)
			kit.Must(t, client.Send(redistest.AppendCommand(redistest.AppendCommand(nil, first...), second...)))
			delayed.wait(t)
			client.SetTimeout(kit.WaitLimit / 2) // shorter than the master-timeout
			reply, err := client.Receive()
			if err != nil || reply == nil {
				t.Fatalf("%v, then %v: got %#v, %v while the second one is under way", first, second, reply, err)
			}
			delayed.release()
			client.SetTimeout(kit.WaitLimit)
			if _, err := client.Receive(); err != nil {
				t.Errorf("%v, then %v: %v", first, second, err)
			}
			kit.Must(t, client.Close())
			kit.Want(t, connect(t, otherProxy), int64(1), "UNLOCK", "lock:a", "me")
		}
	}
}
