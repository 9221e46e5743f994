//go:build integration

package guard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// startProxyWith starts a proxy with the given masters, and waits until all of them vote.
func startProxyWith(t *testing.T, masters []*redistest.Server) *harness.Proxy {
	t.Helper()
	f := &kit.Fleet{Masters: masters, Proxies: []*harness.Proxy{kit.StartProxy(t, redistest.URLs(masters))}}
	f.WantVoting(t, len(masters))
	return f.Proxies[0]
}

// confirmSettings runs init --new-settings with the default settings on masters.
func confirmSettings(t *testing.T, masters []*redistest.Server) {
	t.Helper()
	args := []string{"init", "--new-settings"}
	for _, url := range redistest.URLs(masters) {
		args = append(args, "--master", url)
	}
	if output, err := kit.ProxyCommand(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// TestTwoMasterCounts checks that a proxy with three of five masters gets no votes while a proxy
// with all five masters grants locks. A majority of the five masters and a majority of the three
// may have no master in common. docs/masters.md describes how to change the number; see
// TestChangedMasterCount.
func TestTwoMasterCounts(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	masters := kit.StartMasters(t)
	f := &kit.Fleet{Masters: masters}
	proxyOf5 := startProxyWith(t, masters)
	client := kit.Connect(t, proxyOf5)
	kit.WantGrant(t, client, "LOCK", "k", "t", "PX", "60000")
	kit.EachMaster(t, masters, func(master *redistest.Server) error { return kit.CheckToken(master, "0", "k", "t") })
	for _, i := range []int{1, 2} { // as if they had missed the LOCK
		kit.Must(t, kit.SendToMaster(f.Masters[i], "DEL", "k"))
	}
	clientOf3 := kit.Connect(t, kit.StartProxy(t, redistest.URLs(masters[:3])))
	kit.Eventually(t, func() error {
		text := fmt.Sprint(kit.Do(t, clientOf3, "LOCK", "k", "u", "PX", "60000"))
		if !strings.HasPrefix(text, "NOQUORUM 0 of 3 masters vote: 3 are in use by proxies with different settings; masters: the masters have "+addrs(masters)+", this proxy has "+addrs(masters[:3])+"; ") {
			return fmt.Errorf("LOCK of the proxy of three: %s", text)
		}
		return nil
	})
	kit.Want(t, client, int64(1), "UNLOCK", "k", "t")
}

// TestChangedMasterCount changes from five masters to three and back while no proxy runs. All
// proxies stop, the longest TTL in use passes, and an operator confirms the new masters. Then
// proxies with these masters start. The lock is granted again, but not before its lease has
// expired.
func TestChangedMasterCount(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	const ttl = 2 * time.Second
	masters := kit.StartMasters(t)
	for _, numbers := range [][2]int{{5, 3}, {3, 5}} {
		t.Run(fmt.Sprintf("from %d to %d", numbers[0], numbers[1]), func(t *testing.T) {
			oldProxy := startProxyWith(t, masters[:numbers[0]])
			sent := time.Now()
			validity := kit.WantGrant(t, kit.Connect(t, oldProxy), "LOCK", "k", "t", "PX", kit.Millis(ttl))
			kit.Must(t, oldProxy.Close())
			time.Sleep(ttl) // until the lease has expired
			confirmSettings(t, masters[:numbers[1]])
			client := kit.Connect(t, startProxyWith(t, masters[:numbers[1]]))
			kit.Eventually(t, func() error {
				reply := kit.Do(t, client, "LOCK", "k", "u", "PX", kit.Millis(ttl))
				if _, granted := reply.(int64); !granted {
					return fmt.Errorf("LOCK: %v", reply)
				}
				return nil
			})
			if elapsed := time.Since(sent); elapsed < validity {
				t.Errorf("DOUBLE GRANT after %v, the first is valid for %v", elapsed, validity)
			}
			kit.Want(t, client, int64(1), "UNLOCK", "k", "u")
		})
	}
}
