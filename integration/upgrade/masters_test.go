//go:build integration && history

package upgrade

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestMastersUpgradedInPlace restarts the masters one after the other as another release, with
// their data, while clients lock.
func TestMastersUpgradedInPlace(t *testing.T) {
	for _, path := range [][]string{{"redis-6.0.16", redistest.InstalledVersion, "redis-8.0.6"},
		{redistest.InstalledVersion, "valkey-9.1.2"}} {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			r := startCurrentProxies(t, path[0])
			for _, version := range path[1:] {
				for _, master := range r.masters {
					kit.Must(t, master.Kill())
					time.Sleep(100 * time.Millisecond) // the fault lasts
					kit.Must(t, master.RestartWithVersion(version))
					r.wantVoting()
				}
				r.wantNoLoss(version, false) // a contended key may get NOQUORUM during a restart
			}
			r.stop()
		})
	}
}

// TestMastersReplacedByAnotherRelease replaces the masters by empty servers of another release, one
// after the other, by PROXY RELOAD.
func TestMastersReplacedByAnotherRelease(t *testing.T) {
	for _, path := range [][]string{{"redis-6.0.16", "redis-8.0.6"}, {"redis-8.0.6", "valkey-9.1.2"},
		{"valkey-9.1.2", redistest.InstalledVersion}} {
		t.Run(strings.Join(path, " "), func(t *testing.T) {
			r := startCurrentProxies(t, path[0])
			for i, old := range r.masters {
				r.masters[i] = redistest.New(t, redistest.Options{Version: path[1], InMemory: true,
					ExtraArgs: redistest.DurableArgs()})
				for proxy := range r.proxies {
					r.writeConfig(proxy, r.masters)
				}
				operator := kit.Dial(t, r.addrs[i%2])
				// On a busy machine, a master may be down for a moment.
				kit.Eventually(t, func() error {
					if reply, failed := kit.Do(t, operator, "PROXY", "RELOAD").(redistest.RespError); failed {
						return reply
					}
					return nil
				})
				kit.Must(t, r.proxies[1-i%2].Signal(syscall.SIGHUP))
				r.wantVoting()
				kit.Must(t, old.Kill())
			}
			r.wantNoLoss(path[1], false) // commands during the change may get NOQUORUM
			r.stop()
		})
	}
}

// startCurrentProxies starts masters of a version, and current proxies.
func startCurrentProxies(t *testing.T, version string) *rig {
	t.Helper()
	program, err := harness.BuildProxy(t.Context())
	kit.Must(t, err)
	seed := kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("seed %d (%s)", seed, kit.SeedEnv)
	return startRig(t, program, seed, version)
}

// wantVoting waits until each proxy has all current masters, and all of them vote.
func (r *rig) wantVoting() {
	r.t.Helper()
	for _, addr := range r.addrs {
		client := kit.Dial(r.t, addr)
		kit.Eventually(r.t, func() error {
			info := fmt.Sprint(kit.Do(r.t, client, "PROXY", "INFO"))
			for _, master := range r.masters {
				if !strings.Contains(info, "address="+master.Addr()+",") {
					return fmt.Errorf("%s is none of its masters:\n%s", master.Addr(), info)
				}
			}
			if !strings.Contains(info, fmt.Sprintf("redlock_masters_voting:%d\r\n", len(r.masters))) {
				return fmt.Errorf("not all masters vote:\n%s", info)
			}
			return nil
		})
		client.Close()
	}
}
