//go:build integration

package moving

import (
	"fmt"
	"slices"
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestMoveWithUnreachableMasters takes locks while one of three masters is away. An operator tries
// to move the locks back while another master is away. Then only one of the masters that vote has
// the locks, which failed attempts may also have left behind. So the move fails, and the locks stay
// at the masters. When all masters are back, each lock is still held, and its holder can release
// it.
func TestMoveWithUnreachableMasters(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...), masters: kit.StartMasters(t)[:3]}
	links := kit.StartLinks(t, r.masters)
	r.args = slices.Concat(kit.LockKeyArgs(r.upstream), []string{"--move-from-upstream", "--master-timeout", "1s"})
	for range 2 {
		proxy := kit.StartProxy(t, kit.LinkURLs(links), r.args...)
		r.proxies, r.addrs = append(r.proxies, proxy), append(r.addrs, proxy.Addr())
	}
	r.wantVoting()
	r.mustMove(0)
	r.wantVoting()
	client := kit.Connect(t, r.proxies[0])
	kit.Must(t, links[2].Refuse())
	for i := range 20 {
		kit.Want(t, client, "OK", "SET", fmt.Sprint("lock:", i), "me", "NX", "PX", "600000")
	}
	fleet := &kit.Fleet{Masters: r.masters, Proxies: r.proxies}
	kit.Must(t, links[1].Refuse())
	fleet.WantVoting(t, 1)
	kit.Must(t, links[2].Heal())
	fleet.WantVoting(t, 2)
	r.wantRefused(0, "NOQUORUM the locks stay at the masters: ", backFlag)
	kit.Must(t, links[1].Heal())
	r.wantVoting()
	kit.Eventually(t, func() error { return r.checkNoRemainingKeys(false) })
	other := kit.Connect(t, r.proxies[1])
	for i := range 20 {
		kit.Want(t, other, "me", "GET", fmt.Sprint("lock:", i))
		kit.Want(t, other, int64(1), "UNLOCK", fmt.Sprint("lock:", i), "me")
	}
}
