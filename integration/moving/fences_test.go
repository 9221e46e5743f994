//go:build integration

package moving

import (
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestFencesDuringMove moves the locks to the masters and back, again and again, while clients wait
// for locks with FENCE. No lock is held twice, fences increase, and no lock remains at the end.
func TestFencesDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t)
	r.mustMove(0)
	stop := kit.StartFencedWaiters(t, r.proxies)
	for i := range int(kit.NumberFrom(t, "REDLOCK_FENCED_MOVES", 6)) {
		r.mustMove(i%len(r.proxies), backFlag)
		r.mustMove((i + 1) % len(r.proxies))
		time.Sleep(100 * time.Millisecond) // the masters grant locks for a while
	}
	stop()
}
