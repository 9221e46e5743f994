package queue

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/quorum/watch"
)

// locks holds the keys that are taken, for waiters of one process in a synctest bubble.
type locks struct {
	queues Queues[string]
	taken  map[string]bool
	// served holds the names of the waiters that were granted their keys, in order.
	served []string
	tries  atomic.Int32
}

// wait starts a waiter for some keys.
func (l *locks) wait(ctx context.Context, name string, timeout <-chan time.Time, keys ...string) (result *WaitResult) {
	result = new(WaitResult)
	go func() {
		*result = l.queues.Await(ctx, LockWaitOptions[string]{
			Keys: keys, Timeout: timeout, Rand: func() float64 { return 1 },
			QuorumRegained: func() <-chan struct{} { return nil },
			Alarm: func(string) Alarm {
				return &fakeAlarm{view: watch.View{Verdict: watch.Held, Expiry: time.Now().Add(time.Hour)}}
			},
			Try: func() (TryResult, int, int) {
				l.tries.Add(1)
				if i := slices.IndexFunc(keys, func(key string) bool { return l.taken[key] }); i >= 0 {
					return TryRefused, i, 0
				}
				for _, key := range keys {
					l.taken[key] = true
				}
				l.served = append(l.served, name)
				return TryTaken, 0, 0
			},
		})
	}()
	synctest.Wait()
	return result
}

// release releases keys that a waiter of this process was granted.
func (l *locks) release(keys ...string) {
	for _, key := range keys {
		delete(l.taken, key)
		l.queues.RecordRelease(key, -1)
		synctest.Wait()
	}
}

func (l *locks) wantServed(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(l.served, want) {
		t.Errorf("served %q, want %q", l.served, want)
	}
}

func newLocks(taken ...string) *locks {
	l := &locks{taken: map[string]bool{}}
	for _, key := range taken {
		l.taken[key] = true
	}
	return l
}

// TestSeveralKeysInOrder checks that waiters for several keys are served in the order in which they
// came, whatever the order of their keys, and that each takes all of its keys or none.
func TestSeveralKeysInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks()
		l.wait(t.Context(), "first", nil, "a", "b")
		l.wait(t.Context(), "second", nil, "b", "c", "a")
		l.wait(t.Context(), "third", nil, "c", "a")
		l.wait(t.Context(), "fourth", nil, "d")
		l.wantServed(t, "first", "fourth")
		l.release("a")
		l.wantServed(t, "first", "fourth")
		if l.taken["a"] || l.taken["c"] {
			t.Error("a waiter holds keys")
		}
		l.release("b")
		l.wantServed(t, "first", "fourth", "second")
		l.release("a", "b", "c", "d")
		l.wantServed(t, "first", "fourth", "second", "third")
		l.release("a", "c")
		if l.queues.Len() != 0 {
			t.Errorf("%d wait", l.queues.Len())
		}
	})
}

// TestSeveralKeysWaitForRefusingKey checks that a waiter waits for the key that refused its last
// try, and does not try when others of its keys are released.
func TestSeveralKeysWaitForRefusingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks("a", "b")
		l.wait(t.Context(), "waiter", nil, "a", "b")
		l.release("b")
		if l.tries.Load() != 1 {
			t.Errorf("%d tries while it waits for a", l.tries.Load())
		}
		l.taken["b"] = true // another client takes it
		l.release("a")
		if l.tries.Load() != 2 {
			t.Errorf("%d tries after the release of a", l.tries.Load())
		}
		l.taken["a"] = true
		l.release("b")
		l.release("a")
		l.wantServed(t, "waiter")
		if l.tries.Load() != 4 {
			t.Errorf("%d tries", l.tries.Load())
		}
	})
}

// TestSeveralKeysBlockNoOtherRequest checks that a waiter for several keys makes no other request
// wait in vain: a request without a wait may take a key for which the waiter does not wait, and one
// whose wait ends tries once.
func TestSeveralKeysBlockNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks("b")
		l.wait(t.Context(), "several", nil, "a", "b")
		if l.queues.Len() != 1 {
			t.Errorf("%d wait", l.queues.Len())
		}
		for key, want := range map[string]bool{"a": false, "b": true} {
			if waits, _ := l.queues.HasWaiter(key); waits != want {
				t.Errorf("%s: waits %v, want %v", key, waits, want)
			}
		}
		freeKey, heldKey := l.wait(t.Context(), "a", time.After(time.Minute), "a"), l.wait(t.Context(), "b", time.After(time.Minute), "b")
		tries := l.tries.Load()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		l.wantServed(t, "a")
		if *freeKey != WaitDone || *heldKey != WaitTimedOut || l.tries.Load() != tries+1 {
			t.Errorf("results %d and %d after %d tries, want %d and %d after %d", *freeKey, *heldKey, l.tries.Load(), WaitDone, WaitTimedOut, tries+1)
		}
		l.release("b") // the waiter tries, and then waits for a
		if waits, _ := l.queues.HasWaiter("b"); waits {
			t.Error("it waits for b")
		}
		l.release("a")
		l.wantServed(t, "a", "several")
	})
}

// TestSeveralKeysBehindOtherWaiters checks that a waiter that is not the head of all its queues
// does not count as a waiter for the key of which it is the head.
func TestSeveralKeysBehindOtherWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks("b")
		l.wait(t.Context(), "b", nil, "b")
		l.wait(t.Context(), "several", nil, "a", "b")
		if waits, _ := l.queues.HasWaiter("a"); waits {
			t.Error("a waits although no client holds a")
		}
		l.release("b")
		l.release("b")
		l.wantServed(t, "b", "several")
	})
}

// TestSeveralKeysLeave checks that the waiters behind a waiter that leaves are served.
func TestSeveralKeysLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocks("b")
		ctx, leave := context.WithCancel(t.Context())
		result := l.wait(ctx, "leaves", nil, "a", "b")
		l.wait(t.Context(), "next", nil, "a", "c")
		l.wantServed(t)
		leave()
		synctest.Wait()
		l.wantServed(t, "next")
		if *result != WaitCanceled || l.queues.Len() != 0 {
			t.Errorf("result %d, %d wait", *result, l.queues.Len())
		}
	})
}

// TestSeveralKeysMarkOnlyRefusingKey checks that a waiter shows other processes only the key for
// which it waits. With the grant it asks for each key whether another process waits.
func TestSeveralKeysMarkOnlyRefusingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &fakePeers{}
		l := newLocks("a")
		l.queues.Peers = peers
		l.wait(t.Context(), "waiter", nil, "a", "b")
		if len(peers.marks) != 1 || peers.unmarkCount != 0 {
			t.Fatalf("%d marks, %d removed", len(peers.marks), peers.unmarkCount)
		}
		l.taken["b"] = true
		l.release("a")
		if len(peers.marks) != 2 || peers.unmarkCount != 1 {
			t.Errorf("%d marks, %d removed", len(peers.marks), peers.unmarkCount)
		}
		l.release("b")
		l.wantServed(t, "waiter")
		if peers.unmarkCount != 2 || peers.askCount != 2 {
			t.Errorf("%d marks removed, %d keys asked for", peers.unmarkCount, peers.askCount)
		}
	})
}
