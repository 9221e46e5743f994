//go:build integration

package guardschedules

import (
	"testing"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
	"redlock-proxy/internal/redistest/faultlink"
	"redlock-proxy/quorum/guard/script"
)

// TestLostCopy restarts a master without its data, and the message with a copy is lost on the way
// to it. The master still has the copy when it votes again. Otherwise a lock that it granted with
// two other masters could be granted twice.
func TestLostCopy(t *testing.T) {
	t.Parallel()
	masters := kit.StartMasters(t)
	link, err := faultlink.NewCommandLink(masters[masterC].Addr())
	kit.Must(t, err)
	t.Cleanup(func() { kit.NoError(t, link.Close()) })
	urls := redistest.URLs(masters)
	urls[masterC] = "redis://" + link.Addr()
	f := &kit.Fleet{Masters: masters, Proxies: []*harness.Proxy{kit.StartProxy(t, urls)}}
	f.WantVoting(t, masterCount)
	kit.WantGrant(t, kit.Connect(t, f.Proxies[0]), "LOCK", "k", "t", "PX", "600000")
	stands := func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") }
	kit.EachMaster(t, masters, stands)

	fill := link.HoldCommands(faultlink.OnlyFirst(1, faultlink.Containing(script.Fill.SHA)))
	kit.Must(t, masters[masterC].Restart())
	kit.Must(t, fill.Wait(1, kit.WaitLimit))
	fill.Discard()
	f.WantVoting(t, masterCount)
	kit.Must(t, stands(masters[masterC]))
}
