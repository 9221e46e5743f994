//go:build integration

package lockkeys

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// stallsEnv sets the number of times that TestHistoriesOfStalledProxies runs each mix.
	stallsEnv = "REDLOCK_STALLS"
	// longestStall is more than twice the limit of a round. So a stopped proxy may continue after
	// other proxies have finished.
	longestStall = 1300 * time.Millisecond
	// longestRun is the longest time between two stalls of a proxy. It is enough for a few
	// commands.
	longestRun = 60 * time.Millisecond
)

// TestHistoriesOfStalledProxies checks that every reply is one that a single Redis could have
// given; late commands may get NOQUORUM. The masters have no faults. The proxies are stopped and
// continued independently at any moment, as on a machine without free processors.
func TestHistoriesOfStalledProxies(t *testing.T) {
	redistest.SkipShort(t)
	runs, seed := int(kit.NumberFrom(t, stallsEnv, 2)), kit.NumberFrom(t, kit.SeedEnv, rand.Uint64())
	t.Logf("%d runs of each mix (%s); seed %d (%s)", runs, stallsEnv, seed, kit.SeedEnv)
	for name, verbs := range verbSets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the proxies are stopped most of the time
			f := startLockKeyFleet(t, 2)
			var result verdict
			var total tally
			for run := range runs {
				stop := stallProxies(t, f.Proxies, seed+uint64(run))
				c := startLockClients(t, &lockClients{
					addrs: f.Addrs(), seed: seed + uint64(run), verbs: verbs, supportsLock: true,
					prefix: fmt.Sprintf("run%d:", run),
				}, clientCount, opsPerRun)
				total = total.add(c.finish())
				stop()
				runResult := c.checkHistories()
				for _, key := range runResult.examples {
					t.Logf("run %d, a VIOLATION: %v", run+1, key)
				}
				result = result.add(runResult)
			}
			result.wantNoViolation(t)
			total.report(t)
		})
	}
}

// stallProxies stops and continues each proxy at random until stop is called.
func stallProxies(t *testing.T, proxies []*harness.Proxy, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	errs := make([]error, len(proxies))
	for i, p := range proxies {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		tasks.Go(func() {
			for errs[i] == nil && sleepFor(ctx, time.Duration(random.Int64N(int64(longestRun)))) {
				duration := time.Duration(float64(longestStall) * random.Float64() * random.Float64())
				errs[i] = p.Pause()
				sleepFor(ctx, duration)
				errs[i] = errors.Join(errs[i], p.Continue())
			}
		})
	}
	return func() {
		cancel()
		tasks.Wait()
		kit.Must(t, errors.Join(errs...))
	}
}

// sleepFor waits, and returns false if ctx ended first.
func sleepFor(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
