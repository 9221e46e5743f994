//go:build integration

package masters

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestStartDuringAChange kills a proxy, and starts it with the new masters while another proxy
// changes to these masters. Each time all proxies grant locks soon.
func TestStartDuringAChange(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 3, 3, 4)
	startedAt := time.Now()
	for round := range int(kit.NumberFrom(t, "REDLOCK_STARTS", 10)) {
		masters := []int{round % 4, (round + 1) % 4, (round + 2) % 4}
		kit.Must(t, r.proxies[2].Kill())
		r.writeAllMasters(masters...)
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			r.tryReload(0)
		}()
		// The proxy starts at any moment of the change.
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		r.proxies[2] = kit.StartConfigured(t, r.files[2])
		<-changed
		for i, proxy := range r.proxies {
			client := kit.Connect(t, proxy)
			kit.Eventually(t, func() error {
				if reply := kit.Do(t, client, "LOCK", fmt.Sprint("k", round, i), "t", "PX", "60000"); !kit.IsGranted(reply) {
					return fmt.Errorf("round %d: proxy %d: %v", round, i, reply)
				}
				return nil
			})
		}
		r.wantVoting(masters...)
	}
	t.Logf("%v", time.Since(startedAt).Round(time.Millisecond))
}

// TestFormerListDuringQuarantine ends all proxies while all masters are in quarantine, after a
// change of the masters. The master that was removed is down, or empty. A proxy that starts with the
// former list grants nothing, and proxies with the new list have all masters vote again.
func TestFormerListDuringQuarantine(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	for name, remove := range map[string]func(*redistest.Server) error{
		"the removed master is down":  (*redistest.Server).Kill,
		"the removed master is empty": func(s *redistest.Server) error { return kit.SendToMaster(s, "FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRig(t, 2, 3, 4)
			r.change(0, 1, 3)
			kit.Must(t, remove(r.servers[2]))
			kit.WantGrant(t, kit.Connect(t, r.proxies[0]), "LOCK", "k", "t", "PX", "3000")
			r.flushAndKillProxies(0, 1, 3)
			former := kit.Connect(t, kit.StartProxy(t, []string{r.url(0), r.url(1), r.url(2)}, "--lock-keys", "k*"))
			former.SetTimeout(20 * time.Second)
			// The masters would vote for the new list after 3 s.
			for start := time.Now(); time.Since(start) < 6*time.Second; time.Sleep(100 * time.Millisecond) {
				reply := kit.Do(t, former, "LOCK", "k", "u", "PX", "1000")
				if kit.IsGranted(reply) {
					t.Fatalf("granted by the former masters: %v", reply)
				}
			}
			if reply := fmt.Sprint(kit.Do(t, former, "LOCK", "k", "u", "PX", "1000")); !strings.Contains(reply, "masters: the list was changed") {
				t.Error(reply)
			}
			for i := range r.proxies {
				r.proxies[i] = kit.StartConfigured(t, r.files[i])
			}
			r.wantVoting(0, 1, 3)
			kit.WantGrant(t, kit.Connect(t, r.proxies[1]), "LOCK", "k", "u", "PX", "1000")
		})
	}
}

// flushAndKillProxies deletes all data of the masters. It kills the proxies when each master has a
// quarantine record that states how long to wait.
func (r *rig) flushAndKillProxies(masters ...int) {
	r.t.Helper()
	var servers []*redistest.Server
	for _, i := range masters {
		kit.Must(r.t, kit.SendToMaster(r.servers[i], "FLUSHALL"))
		servers = append(servers, r.servers[i])
	}
	kit.WantQuarantine(r.t, servers)
	for _, proxy := range r.proxies {
		kit.Must(r.t, proxy.Kill())
	}
}
