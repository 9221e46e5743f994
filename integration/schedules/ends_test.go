//go:build integration

package schedules

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// expiryTolerance is the tolerance for the expiry time of a key: proxies round to milliseconds.
const expiryTolerance = 3 * time.Millisecond

// timeRange is the range in which an unknown time lies.
type timeRange struct{ from, to time.Time }

// expiryOn returns the range in which the expiry time of a key on a master lies.
func expiryOn(t *testing.T, master *redistest.Server, key string) timeRange {
	t.Helper()
	sentAt := time.Now()
	return expirySince(sentAt, readKeys(t, master, key)[0].pttl)
}

// expirySince returns the range in which a time lies that was ttl away at some moment since sentAt.
func expirySince(sentAt time.Time, ttl time.Duration) timeRange {
	return timeRange{sentAt.Add(ttl), time.Now().Add(ttl)}
}

// wantWithin fails the test unless the range overlaps the allowed range, extended by
// expiryTolerance.
func (s timeRange) wantWithin(t *testing.T, allowed timeRange, changes int64) {
	t.Helper()
	if tooEarly := allowed.from.Sub(s.to); tooEarly > expiryTolerance {
		t.Errorf("after %d changes the key ends %v too early", changes, tooEarly)
	}
	if tooLate := s.from.Sub(allowed.to); tooLate > expiryTolerance {
		t.Errorf("after %d changes the key ends %v too late", changes, tooLate)
	}
}

// keepBusy starts six clients of the proxies. Each client repeats a command until stop is called or
// the test ends. count counts the replies that are numbers.
func keepBusy(t *testing.T, proxies []*proxy, command ...string) (count *atomic.Int64, stop func()) {
	t.Helper()
	count = &atomic.Int64{}
	var stopped atomic.Bool
	var tasks sync.WaitGroup
	for i := range 6 {
		client := connect(t, proxies[i%len(proxies)])
		tasks.Go(func() {
			for !stopped.Load() {
				reply, err := client.Do(command...)
				if err != nil {
					t.Error(err)
					return
				}
				if _, ok := reply.(int64); ok {
					count.Add(1)
				}
			}
		})
	}
	stop = func() { stopped.Store(true); tasks.Wait() }
	t.Cleanup(stop)
	return count, stop
}

// TestExpiryDuringManyChanges increments a key with a TTL of a minute through three proxies. Its
// expiry time on each master stays within the range of its first expiry times on the masters.
func TestExpiryDuringManyChanges(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	var proxies []*proxy
	for range 3 {
		proxies = append(proxies, f.startProxy(t))
	}
	kit.Want(t, connect(t, proxies[0]), "OK", "SET", "lock:k", "0", "PX", "60000")
	f.wantHolders(t, "lock:k", "0", A, B, C)
	var allowed timeRange
	for m, master := range f.masters {
		expiry := expiryOn(t, master, "lock:k")
		if m == 0 || expiry.from.Before(allowed.from) {
			allowed.from = expiry.from
		}
		if m == 0 || expiry.to.After(allowed.to) {
			allowed.to = expiry.to
		}
	}
	count, stop := keepBusy(t, proxies, "INCR", "lock:k")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes continue
		for _, master := range f.masters {
			expiryOn(t, master, "lock:k").wantWithin(t, allowed, count.Load())
		}
	}
	t.Logf("%d changes", count.Load())
	stop()
}

// TestExpiryDuringManyExtends lets clients repeatedly EXTEND a lock of 20 s with a TTL of a second,
// through three proxies. The EXTENDs do not shorten the lease: no rival is granted the lock during
// the first lease.
func TestExpiryDuringManyExtends(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.startProxy(t), f.startProxy(t), f.startProxy(t)}
	validUntil := wantGrant(t, connect(t, proxies[0]), "LOCK", "lock:k", "t", "PX", "20000")
	count, stop := keepBusy(t, proxies, "EXTEND", "lock:k", "t", "PX", "1000")
	time.Sleep(time.Until(validUntil) - 3*time.Second) // the EXTENDs continue
	stop()
	t.Logf("%d times extended", count.Load())
	wantHeldUntil(t, connect(t, proxies[0]), "lock:k", validUntil)
}

// wantHeldUntil fails the test if a rival is granted a lock before its lease ends.
func wantHeldUntil(t *testing.T, rival *redistest.Client, key string, validUntil time.Time) {
	t.Helper()
	for time.Until(validUntil) > 0 {
		granted := isGrant(kit.Do(t, rival, "LOCK", key, "rival", "PX", "60000"))
		if left := time.Until(validUntil); granted && left > 0 {
			t.Fatalf("a rival is granted %s %v before the lease ends", key, left)
		}
		time.Sleep(5 * time.Millisecond) // polls
	}
}

// TestExpiryDuringManyChangesOfTag checks that the expiry time of a key stays the same while
// another key of its tag is incremented through three proxies.
func TestExpiryDuringManyChangesOfTag(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.taggedProxy(t), f.taggedProxy(t), f.taggedProxy(t)}
	client := connect(t, proxies[0])
	kit.Want(t, client, "OK", "SET", "x:{lock:k}", "0", "PX", "60000")
	const ttl = 2 * time.Minute
	sentAt := time.Now()
	kit.Want(t, client, "OK", "SET", "y:{lock:k}", "0", "PX", kit.Millis(ttl))
	kit.EachMaster(t, f.masters, func(master *redistest.Server) error {
		if left := readKeys(t, master, "lock:k")[0].pttl; left < ttl/2 {
			return fmt.Errorf("the last key ends in %v", left)
		}
		return nil
	})
	allowed := expirySince(sentAt, ttl)
	expiry := func() (found timeRange) {
		kit.Eventually(t, func() error {
			sentAt := time.Now()
			reply := kit.Do(t, client, "PTTL", "y:{lock:k}")
			ms, isNumber := reply.(int64)
			if !isNumber {
				return fmt.Errorf("PTTL: %v", reply)
			}
			found = expirySince(sentAt, time.Duration(ms)*time.Millisecond)
			return nil
		})
		return found
	}
	count, stop := keepBusy(t, proxies, "INCR", "x:{lock:k}")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes continue
		expiry().wantWithin(t, allowed, count.Load())
	}
	t.Logf("%d changes", count.Load())
	stop()
}
