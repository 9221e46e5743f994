package removals

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// removalRecorder runs removals and records the calls of Remove, which succeed while succeeds is
// set.
type removalRecorder struct {
	*Removals[string]
	start time.Time

	mu       sync.Mutex
	succeeds bool
	calls    []time.Duration
}

// runInBubble runs a test in a synctest bubble, in which Run carries out the removals.
func runInBubble(t *testing.T, test func(t *testing.T, r *removalRecorder)) {
	synctest.Test(t, func(t *testing.T) {
		r := &removalRecorder{start: time.Now()}
		r.Removals = New(Options[string]{
			Remove: func(context.Context, string, string) bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.calls = append(r.calls, time.Since(r.start))
				return r.succeeds
			},
			IsReady: func() bool { return true },
			Size:    func(key string) int { return len(key) },
		})
		ctx, stop := context.WithCancel(t.Context())
		var tasks sync.WaitGroup
		tasks.Go(func() { r.Run(ctx, &tasks) })
		defer tasks.Wait()
		defer stop()
		test(t, r)
	})
}

// setSucceeds makes later calls of Remove succeed or fail.
func (r *removalRecorder) setSucceeds(succeeds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.succeeds = succeeds
}

// wantCalls compares the times of the calls of Remove, in milliseconds, and discards them.
func (r *removalRecorder) wantCalls(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []int
	for _, at := range r.calls {
		got = append(got, int(at.Milliseconds()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("Remove was called at %v ms, want %v", got, want)
	}
	r.calls = nil
}

// TestRemovals checks that a removal is due immediately, and then after pauses that grow to a
// second. After a majority has replied, Run repeats the removal each second while the version may
// still arrive, and then drops it.
func TestRemovals(t *testing.T) {
	runInBubble(t, func(t *testing.T, r *removalRecorder) {
		var mu sync.Mutex
		arriving := true
		mayArrive := func() bool { mu.Lock(); defer mu.Unlock(); return arriving }
		for range 2 { // the second Add finds the version
			added := r.Add("k", "v", time.Now().Add(time.Minute), mayArrive)
			if !added || r.Len() != 1 || !r.IsPending("k", "v") || r.IsPending("k", "w") {
				t.Fatalf("%d pending, want 1", r.Len())
			}
		}
		time.Sleep(2 * time.Second)
		r.wantCalls(t, 0, 50, 150, 350, 750, 1550)
		r.setSucceeds(true)
		time.Sleep(2 * time.Second)
		r.wantCalls(t, 2550, 3550)
		mu.Lock()
		arriving = false
		mu.Unlock()
		time.Sleep(2 * time.Second)
		r.wantCalls(t, 4550)
		if r.IsPending("k", "v") || r.Len() != 0 || r.bytes != 0 || r.pendingCount != 0 {
			t.Errorf("all removed: %d pending, %d bytes, %d remaining", r.Len(), r.bytes, r.pendingCount)
		}
	})
}

// TestRemovalAfterLease checks that Run drops a removal when the lease expires.
func TestRemovalAfterLease(t *testing.T) {
	runInBubble(t, func(t *testing.T, r *removalRecorder) {
		r.Add("k", "v", time.Now().Add(100*time.Millisecond), nil)
		time.Sleep(time.Second)
		r.wantCalls(t, 0, 50)
		if r.Len() != 0 || r.pendingCount != 0 {
			t.Errorf("%d pending", r.Len())
		}
	})
}

// TestRemovalLimits checks that Add refuses versions beyond the limits.
func TestRemovalLimits(t *testing.T) {
	r := New(Options[string]{Size: func(key string) int { return len(key) }})
	large := string(make([]byte, maxBytes/2))
	for i, want := range []bool{true, true, false} {
		if got := r.Add(large[i+1:], "v", time.Now().Add(time.Hour), nil); got != want {
			t.Errorf("removal %d: %v", i, got)
		}
	}
}

// TestWaitAll checks that WaitAll makes all removals due immediately, and waits until each has
// succeeded after the call, or its context ends.
func TestWaitAll(t *testing.T) {
	runInBubble(t, func(t *testing.T, r *removalRecorder) {
		if err := r.WaitAll(t.Context()); err != nil {
			t.Errorf("nothing pending: %v", err)
		}
		r.setSucceeds(true)
		r.Add("k", "v", time.Now().Add(time.Hour), func() bool { return true })
		time.Sleep(10 * time.Millisecond)
		r.wantCalls(t, 0)
		if err := r.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
		r.wantCalls(t, 10)
		r.setSucceeds(false)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if r.WaitAll(ctx) == nil {
			t.Error("Settle returned before the removal succeeded")
		}
		r.wantCalls(t, 10, 60)
		r.setSucceeds(true)
		if err := r.WaitAll(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
