//go:build integration

package kit

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/harness"
)

// StartFencedWaiters starts six clients at each proxy. Each client repeatedly takes and releases
// one of two locks with FENCE. The test fails if two clients hold a lock at the same time, or if a
// fence is not above the fence of the previous grant. stop ends the clients, and takes both locks.
// It fails the test if a lock is not granted within 3 s.
func StartFencedWaiters(t *testing.T, proxies []*harness.Proxy) (stop func()) {
	t.Helper()
	keys := []string{"lock:fenced:a", "lock:fenced:b"}
	locks := make([]fencedLock, len(keys))
	var ended atomic.Bool
	var workers sync.WaitGroup
	for p, proxy := range proxies {
		for i := range 6 {
			client, n, token := Connect(t, proxy), i%2, fmt.Sprintf("t%d-%d", p, i)
			workers.Go(func() {
				for !ended.Load() {
					reply, err := client.Do("LOCK", keys[n], token, "PX", "60000", "BLOCK", "20000", "FENCE")
					if err != nil {
						t.Errorf("LOCK %s: %v", keys[n], err)
						return
					}
					// The reply holds validity, token and fence, each with its name.
					granted, isArray := reply.([]any)
					if !isArray {
						locks[n].refusals.Add(1)
						time.Sleep(10 * time.Millisecond) // the pace of a client
						continue
					}
					fence, _ := strconv.ParseInt(fmt.Sprint(granted[5]), 10, 64)
					if err := locks[n].recordGrant(fence); err != nil {
						t.Errorf("%s is granted to %s: %v", keys[n], token, err)
					}
					time.Sleep(time.Millisecond) // the client works
					locks[n].isHeld.Store(false)
					reply, err = client.Do("UNLOCK", keys[n], token)
					// This error means that the lock is at the upstream.
					if err == nil && strings.HasPrefix(fmt.Sprint(reply), "ERR UNLOCK") {
						_, err = client.Do("EVAL", compareAndDelete, "1", keys[n], token)
					}
					if err != nil {
						t.Errorf("UNLOCK %s: %v", keys[n], err)
						return
					}
				}
			})
		}
	}
	return func() {
		t.Helper()
		ended.Store(true)
		workers.Wait()
		client := Connect(t, proxies[0])
		began := time.Now()
		for n, key := range keys {
			AwaitWithin(t, WaitLimit/2, func() error {
				if reply := Do(t, client, "LOCK", key, "last", "PX", "60000"); !IsGranted(reply) {
					return fmt.Errorf("%s %v after the last client: %v", key, time.Since(began), reply)
				}
				return nil
			})
			t.Logf("%s: granted %d times, refused %d times", key, locks[n].grants, locks[n].refusals.Load())
		}
	}
}

const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// IsGranted reports whether a reply to LOCK without FENCE grants the lock.
func IsGranted(reply any) bool { _, is := reply.(int64); return is }

// fencedLock records the grants of one lock.
type fencedLock struct {
	mu        sync.Mutex
	lastFence int64
	grants    int
	isHeld    atomic.Bool
	refusals  atomic.Int64
}

// recordGrant records a grant. It returns an error if another client holds the lock, or if the
// fence is not above the fence of the previous grant.
func (l *fencedLock) recordGrant(fence int64) error {
	if l.isHeld.Swap(true) {
		return fmt.Errorf("another client has it")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.lastFence
	l.lastFence = fence
	if l.grants++; fence <= last {
		return fmt.Errorf("its fence %d is not above %d", fence, last)
	}
	return nil
}
