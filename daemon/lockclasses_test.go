package daemon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"redlock-proxy/admin/metrics"
	"redlock-proxy/conf"
	"redlock-proxy/quorum"
)

// freeLocker is a Locker that grants every lock at once.
type freeLocker struct{ metrics.Locker }

func (freeLocker) Lock(context.Context, quorum.LockRequest) (quorum.GrantedLock, error) {
	return quorum.GrantedLock{}, nil
}

func (freeLocker) Unlock(context.Context, quorum.Key, string) error { return nil }

// newClassBenchmark returns a function that records the metrics of a LOCK with BLOCK and of its
// UNLOCK.
func newClassBenchmark(classes int, key string) func() {
	cfg := conf.Default()
	cfg.KeyPrefix = "app:"
	for i := range classes {
		cfg.LockClass = append(cfg.LockClass, fmt.Sprintf("class-%d=team-%d:*:lock", i, i))
	}
	port := &adminPort{metrics: metrics.New("")}
	port.setLockClasses(cfg)
	locks, ctx, keys := port.metrics.CountLocks(freeLocker{}), context.Background(), []quorum.Key{{Name: cfg.KeyPrefix + key}}
	return func() {
		_, _ = locks.Lock(ctx, quorum.LockRequest{Keys: keys, TTL: time.Second, Wait: time.Second})
		_ = locks.Unlock(ctx, keys[0], "t")
		port.metrics.RecordRelease(keys[0], time.Second)
	}
}

// BenchmarkLockClasses compares the cost of the metrics of a lock with 50 classes to the cost
// without classes. Both run by turns, so that the load of the machine changes the ratio little.
func BenchmarkLockClasses(b *testing.B) {
	for name, key := range map[string]string{"first": "team-0:7:lock", "last": "team-49:7:lock", "other": "jobs:7"} {
		b.Run(name, func(b *testing.B) {
			const turn = 1000
			without, with := newClassBenchmark(0, key), newClassBenchmark(50, key)
			var durations [2]time.Duration
			locks := 0
			for b.Loop() {
				for i, run := range []func(){without, with} {
					start := time.Now()
					for range turn {
						run()
					}
					durations[i] += time.Since(start)
				}
				locks += turn
			}
			perLock := func(i int) float64 { return float64(durations[i].Nanoseconds()) / float64(locks) }
			b.ReportMetric(perLock(0), "ns/lock-without")
			b.ReportMetric(perLock(1), "ns/lock-with")
			b.ReportMetric(perLock(1)/perLock(0), "ratio")
			if n := testing.AllocsPerRun(100, with); n > 0 {
				b.Errorf("%v allocations", n)
			}
		})
	}
}

// TestLockClassesOfKeys checks that the globs of classes match keys as the client names them,
// without key-prefix.
func TestLockClassesOfKeys(t *testing.T) {
	cfg := conf.Default()
	cfg.KeyPrefix, cfg.LockClass = "app:", []string{"billing=billing:*", "prefixed=app:*", "billing=invoice-[0-9]"}
	patterns := lockClassesOf(cfg)
	for key, want := range map[string]int{
		"app:billing:1": 0, "app:app:billing:1": 1, "app:invoice-7": 2, "app:invoice-x": -1, "app:job": -1,
	} {
		if got := patterns.IndexOf(key); got != want {
			t.Errorf("%s: got %d, want %d", key, got, want)
		}
	}
}
