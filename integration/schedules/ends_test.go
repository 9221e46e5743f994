//go:build integration

package schedules

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

// mostMoved is the tolerance for the expiry time of a key: proxies round to milliseconds.
const mostMoved = 3 * time.Millisecond

// span is the range in which an unknown time lies.
type span struct{ from, to time.Time }

// endOn returns when a key expires on a master.
func endOn(t *testing.T, master *redistest.Server, key string) span {
	t.Helper()
	asked := time.Now()
	left := look(t, master, key)[0].left
	return span{asked.Add(left), time.Now().Add(left)}
}

// wantWithin fails the test unless the time is within the span all, extended by mostMoved.
func (s span) wantWithin(t *testing.T, all span, changes int64) {
	t.Helper()
	if early := all.from.Sub(s.to); early > mostMoved {
		t.Errorf("after %d changes the key ends %v too early", changes, early)
	}
	if late := s.from.Sub(all.to); late > mostMoved {
		t.Errorf("after %d changes the key ends %v too late", changes, late)
	}
}

// keepBusy starts six clients of the proxies. They send a command repeatedly until stop is called,
// or at most until the test ends. done counts the replies that are numbers.
func keepBusy(t *testing.T, proxies []*proxy, command ...string) (done *atomic.Int64, stop func()) {
	t.Helper()
	done = &atomic.Int64{}
	var over atomic.Bool
	var busy sync.WaitGroup
	for i := range 6 {
		client := connect(t, proxies[i%len(proxies)])
		busy.Go(func() {
			for !over.Load() {
				reply, err := client.Do(command...)
				if err != nil {
					t.Error(err)
					return
				}
				if _, ok := reply.(int64); ok {
					done.Add(1)
				}
			}
		})
	}
	stop = func() { over.Store(true); busy.Wait() }
	t.Cleanup(stop)
	return done, stop
}

// TestEndBesideManyChanges: clients increment a key with a TTL of a minute through three proxies.
// Its expiry time on each master stays within the range of its first expiry times on the masters.
func TestEndBesideManyChanges(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	var proxies []*proxy
	for range 3 {
		proxies = append(proxies, f.proxy(t))
	}
	kit.Want(t, connect(t, proxies[0]), "OK", "SET", "lock:k", "0", "PX", "60000")
	f.wantHolders(t, "lock:k", "0", A, B, C)
	var all span
	for m, master := range f.masters {
		end := endOn(t, master, "lock:k")
		if m == 0 || end.from.Before(all.from) {
			all.from = end.from
		}
		if m == 0 || end.to.After(all.to) {
			all.to = end.to
		}
	}
	done, stop := keepBusy(t, proxies, "INCR", "lock:k")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes continue
		for _, master := range f.masters {
			endOn(t, master, "lock:k").wantWithin(t, all, done.Load())
		}
	}
	t.Logf("%d changes", done.Load())
	stop()
}

// TestEndBesideManyExtends: clients repeatedly extend a lock of 20 s to a second, through three
// proxies. This does not shorten the lease: no rival is granted the lock during its first lease.
func TestEndBesideManyExtends(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.proxy(t), f.proxy(t), f.proxy(t)}
	until := wantGrant(t, connect(t, proxies[0]), "LOCK", "lock:k", "t", "PX", "20000")
	done, stop := keepBusy(t, proxies, "EXTEND", "lock:k", "t", "PX", "1000")
	time.Sleep(time.Until(until) - 3*time.Second) // the EXTENDs continue
	stop()
	t.Logf("%d times extended", done.Load())
	rival := connect(t, proxies[0])
	for time.Until(until) > 0 {
		if isGrant(kit.Do(t, rival, "LOCK", "lock:k", "rival", "PX", "60000")) {
			t.Fatalf("a rival is granted the lock %v before the lease ends", time.Until(until))
		}
		time.Sleep(5 * time.Millisecond) // polls
	}
}

// TestEndBesideManyChangesOfItsTag: a key expires at its time, although another key of its tag is
// incremented through three proxies.
func TestEndBesideManyChangesOfItsTag(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.tagged(t), f.tagged(t), f.tagged(t)}
	client := connect(t, proxies[0])
	kit.Want(t, client, "OK", "SET", "x:{lock:k}", "0", "PX", "60000")
	kit.Want(t, client, "OK", "SET", "y:{lock:k}", "0", "PX", "120000")
	end := func() span {
		asked := time.Now()
		left, _ := kit.Do(t, client, "PTTL", "y:{lock:k}").(int64)
		return span{asked.Add(time.Duration(left) * time.Millisecond),
			time.Now().Add(time.Duration(left) * time.Millisecond)}
	}
	before := end()
	done, stop := keepBusy(t, proxies, "INCR", "x:{lock:k}")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes continue
		end().wantWithin(t, before, done.Load())
	}
	t.Logf("%d changes", done.Load())
	stop()
}
