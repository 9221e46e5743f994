//go:build integration

package masters

import (
	"testing"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// TestFencesDuringChanges adds, replaces and removes masters, again and again, while clients wait
// for locks with FENCE. No lock is held twice, fences increase, and no lock remains at the end.
func TestFencesDuringChanges(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	r := startRig(t, 2, 3, 5)
	stop := kit.StartFencedWaiters(t, r.proxies)
	for range int(kit.NumberFrom(t, "REDLOCK_FENCED_CHANGES", 3)) {
		for _, masters := range [][]int{{0, 1, 2, 3}, {0, 1, 4, 3}, {1, 4, 3}, {1, 4, 2}, {1, 0, 2}, {0, 1, 2}} {
			r.change(masters...)
		}
	}
	stop()
}
