//go:build integration

package masters

import (
	"fmt"
	"math/rand/v2"
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
