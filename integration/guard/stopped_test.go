//go:build integration

package guard

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// stopLease is the TTL of locks during a stop; stopTime, the length of a stop, is longer.
	stopLease = time.Second
	stopTime  = stopLease * 5 / 4
)

// TestGuardOnStoppedMasters stops (SIGSTOP) each master, and then each proxy, for longer than every
// lease. Then the stopped process continues with the commands that it had received. Meanwhile 64
// clients acquire and release locks. By their own clocks, two clients never hold a lock at the same
// time. No data are lost, so this also holds without the guard.
func TestGuardOnStoppedMasters(t *testing.T) {
	redistest.SkipShort(t)
	for _, guard := range []bool{false, true} {
		t.Run(fmt.Sprintf("guard %v", guard), func(t *testing.T) {
			f, seed := startRoundsFleet(t, guard), rand.Uint64()
			c := startChurn(t, f, &churn{seed: seed, lease: stopLease, lateShare: 20})
			defer c.stop()
			for _, master := range f.Masters {
				kit.Must(t, master.Pause())
				time.Sleep(stopTime) // the fault lasts
				kit.Must(t, master.Continue())
				f.WantVoting(t, len(f.Masters))
			}
			wantGrants := func(n int) { kit.Await(t, "enough grants", func() bool { return c.grantCount() >= n }) }
			wantGrants(100)
			whileMastersStopped := c.grantCount()
			for _, proxy := range f.Proxies {
				kit.Must(t, proxy.Signal(syscall.SIGSTOP))
				time.Sleep(stopTime) // the fault lasts
				kit.Must(t, proxy.Signal(syscall.SIGCONT))
				f.WantVoting(t, len(f.Masters))
			}
			wantGrants(whileMastersStopped + 100)
			total, overlaps := c.stop()
			t.Logf("seed %d: %d grants while masters were stopped, %d while proxies were; errors: %v; overlaps: %d",
				seed, whileMastersStopped, total-whileMastersStopped, c.failures, len(overlaps))
			if len(overlaps) > 0 {
				t.Errorf("%d OVERLAPS, such as: %v", len(overlaps), overlaps[0])
			}
		})
	}
}
