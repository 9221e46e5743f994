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

// mostWorn is by how much an end may be moved by what keeps it: less than a lease gives up for clocks.
const mostWorn = 100 * time.Millisecond

// keepBusy has six clients of these proxies send a command all the time, until stop is called, at the latest at the end of the test. done counts those
// that were answered with a number.
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

// TestEndBesideManyChanges: a key of a minute is counted up through three proxies. Its end stays where it was.
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
	end := time.Now().Add(look(t, f.masters[A], "lock:k")[0].left)
	done, stop := keepBusy(t, proxies, "INCR", "lock:k")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes go on meanwhile
		for m, master := range f.masters {
			moved := time.Now().Add(look(t, master, "lock:k")[0].left).Sub(end).Round(time.Millisecond)
			t.Logf("%d changes: master %d: %v", done.Load(), m, moved)
			if moved.Abs() > mostWorn {
				t.Errorf("after %d changes the key ends %v after its time", done.Load(), moved)
			}
		}
	}
	stop()
}

// TestEndBesideManyExtends: a lock of 20 s is extended to a second all the time, through three proxies: it keeps its end. No rival gets it before its
// first lease is over.
func TestEndBesideManyExtends(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.proxy(t), f.proxy(t), f.proxy(t)}
	until := wantGrant(t, connect(t, proxies[0]), "LOCK", "lock:k", "t", "PX", "20000")
	done, stop := keepBusy(t, proxies, "EXTEND", "lock:k", "t", "PX", "1000")
	time.Sleep(time.Until(until) - 3*time.Second) // the EXTENDs go on meanwhile
	stop()
	t.Logf("%d times extended", done.Load())
	rival := connect(t, proxies[0])
	for time.Until(until) > 0 {
		if isGrant(kit.Do(t, rival, "LOCK", "lock:k", "rival", "PX", "60000")) {
			t.Fatalf("a rival is granted the lock %v before the lease is over", time.Until(until))
		}
		time.Sleep(5 * time.Millisecond) // polls
	}
}

// TestEndBesideManyChangesOfItsTag: a key of a minute has the tag of another that is counted up through three proxies. It does not end before its time.
func TestEndBesideManyChangesOfItsTag(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	f := startFleet(t, 3)
	proxies := []*proxy{f.tagged(t), f.tagged(t), f.tagged(t)}
	client := connect(t, proxies[0])
	kit.Want(t, client, "OK", "SET", "x:{lock:k}", "0", "PX", "60000")
	kit.Want(t, client, "OK", "SET", "y:{lock:k}", "0", "PX", "120000")
	end := time.Now().Add(time.Minute)
	done, stop := keepBusy(t, proxies, "INCR", "x:{lock:k}")
	for range 5 {
		time.Sleep(4 * time.Second) // the changes go on meanwhile
		left, _ := kit.Do(t, client, "PTTL", "y:{lock:k}").(int64)
		moved := time.Duration(left)*time.Millisecond - time.Until(end.Add(time.Minute))
		t.Logf("%d changes: %v", done.Load(), moved)
		if moved < -5*mostWorn {
			t.Errorf("after %d changes the key ends %v before its time", done.Load(), -moved)
		}
	}
	stop()
}
