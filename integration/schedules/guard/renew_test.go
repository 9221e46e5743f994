//go:build integration

package guardschedules

import (
	"fmt"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
)

// TestRenewWindow: C restarts from an older RDB, which has the proxies' mark but not the lock.
// While the proxy, over a long way, finds out that this is another life of the server, a rival's
// LOCK uses a new connection to it: between the proxy's n-th connection to the new server and the
// one after.
func TestRenewWindow(t *testing.T) {
	t.Parallel()
	for connections := range 4 {
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) {
			f := startFleet(t, 1, nil, "--master-timeout", "1s")
			rival := kit.Connect(t, f.proxies[0])
			tell(t, f.masters[masterC], "SAVE")
			l := f.holdOnThree(t, "k", time.Minute)
			f.reviveQuietly(t, masterC)
			f.wantForgotten(t, l, masterC)
			f.links[masterC].Delay(30 * time.Millisecond)
			f.awaitConnections(masterC, connections)
			l.wantRefused(t, rival, 200*time.Millisecond)
			f.links[masterC].Delay(0)
			f.wantKept(t, l, rival)
		})
	}
}

// reviveQuietly restarts a master from what it has written, between two looks of the proxies, so
// that they find it restarted, not gone.
func (f *fleet) reviveQuietly(t *testing.T, master int) {
	t.Helper()
	f.afterLook(t, master)
	kit.Must(t, f.masters[master].Revive())
}

// awaitConnections waits until so many connections to a master were opened, from now on, or until
// no more seem to come.
func (f *fleet) awaitConnections(master, n int) {
	before := f.links[master].Taken()
	for end := time.Now().Add(2 * time.Second); f.links[master].Taken() < before+n && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // polls
	}
}
