//go:build integration

package guardschedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestRenewWindow restarts C from an older RDB, which has the marker but not the lock. The test
// delays the link, so the proxy notices the restart late. Meanwhile a rival's LOCK uses a new
// connection: after the proxy's n-th connection to the restarted server, and before its next
// connection.
func TestRenewWindow(t *testing.T) {
	t.Parallel()
	for connections := range 4 {
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) {
			f := startFleet(t, 1, nil, "--master-timeout", "1s")
			rival := kit.Connect(t, f.proxies[0])
			mustSend(t, f.masters[masterC], "SAVE")
			l := f.lockOnThree(t, "k", time.Minute)
			f.restartBetweenProbes(t, masterC)
			f.wantLostOn(t, l, masterC)
			f.links[masterC].Delay(30 * time.Millisecond)
			f.awaitConnections(masterC, connections)
			l.wantRefused(t, rival, 200*time.Millisecond)
			f.links[masterC].Delay(0)
			f.wantKept(t, l, rival)
		})
	}
}

// restartBetweenProbes restarts a master with the data that it has written, between two probes, so
// that the proxies find it restarted, not down.
func (f *fleet) restartBetweenProbes(t *testing.T, master int) {
	t.Helper()
	f.awaitProbe(t, master)
	kit.Must(t, f.masters[master].RestartWithData())
}

// awaitConnections waits up to two seconds until n more connections to a master are opened.
func (f *fleet) awaitConnections(master, n int) {
	start := f.links[master].AcceptedCount()
	for deadline := time.Now().Add(2 * time.Second); f.links[master].AcceptedCount() < start+n && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}
