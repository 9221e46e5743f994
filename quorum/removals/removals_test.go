package removals

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakePayments runs removals and records the calls of Remove, which succeed while paid is set.
type fakePayments struct {
	*Removals[string]
	began time.Time

	mu       sync.Mutex
	paid     bool
	payments []time.Duration
}

// inBubble runs a test with removals that are carried out, in a synctest bubble.
func inBubble(t *testing.T, test func(t *testing.T, b *fakePayments)) {
	synctest.Test(t, func(t *testing.T) {
		b := &fakePayments{began: time.Now()}
		b.Removals = New(Options[string]{
			Remove: func(context.Context, string, string) bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.payments = append(b.payments, time.Since(b.began))
				return b.paid
			},
			Ready: func() bool { return true },
			Size:  func(key string) int { return len(key) },
		})
		ctx, stop := context.WithCancel(t.Context())
		var tasks sync.WaitGroup
		tasks.Go(func() { b.Run(ctx, &tasks) })
		defer tasks.Wait()
		defer stop()
		test(t, b)
	})
}

// setPaid makes later calls of Remove succeed or fail.
func (b *fakePayments) setPaid(paid bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = paid
}

// wantPayments compares the times of the calls of Remove, in milliseconds, and forgets them.
func (b *fakePayments) wantPayments(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []int
	for _, at := range b.payments {
		got = append(got, int(at.Milliseconds()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("payments at %v ms, want %v", got, want)
	}
	b.payments = nil
}

// TestRemovals checks that a removal is due at once, and then after pauses that grow to a second.
// Once a majority has replied, it is repeated each second while the version may still arrive, and
// then forgotten.
func TestRemovals(t *testing.T) {
	inBubble(t, func(t *testing.T, b *fakePayments) {
		var mu sync.Mutex
		arriving := true
		mayArrive := func() bool { mu.Lock(); defer mu.Unlock(); return arriving }
		for range 2 { // the second Add finds the version
			added := b.Add("k", "v", time.Now().Add(time.Minute), mayArrive)
			if !added || b.Len() != 1 || !b.IsPending("k", "v") || b.IsPending("k", "w") {
				t.Fatalf("%d are owed, want 1", b.Len())
			}
		}
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 0, 50, 150, 350, 750, 1550)
		b.setPaid(true)
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 2550, 3550)
		mu.Lock()
		arriving = false
		mu.Unlock()
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 4550)
		if b.IsPending("k", "v") || b.Len() != 0 || b.bytes != 0 || b.remaining != 0 {
			t.Errorf("paid, %d are owed, %d bytes, %d unpaid", b.Len(), b.bytes, b.remaining)
		}
	})
}

// TestRemovalsEndWithTheLease checks that a removal is forgotten when the lease expires.
func TestRemovalsEndWithTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *fakePayments) {
		b.Add("k", "v", time.Now().Add(100*time.Millisecond), nil)
		time.Sleep(time.Second)
		b.wantPayments(t, 0, 50)
		if b.Len() != 0 || b.remaining != 0 {
			t.Errorf("%d are owed", b.Len())
		}
	})
}

// TestRemovalsAreBounded checks that Add refuses versions beyond the limits.
func TestRemovalsAreBounded(t *testing.T) {
	r := New(Options[string]{Size: func(key string) int { return len(key) }})
	large := string(make([]byte, maxBytes/2))
	for i, want := range []bool{true, true, false} {
		if got := r.Add(large[i+1:], "v", time.Now().Add(time.Hour), nil); got != want {
			t.Errorf("removal %d: %v", i, got)
		}
	}
}

// TestSettle checks that Settle makes all removals due at once, and waits until each has succeeded
// after the call, or its context ends.
func TestSettle(t *testing.T) {
	inBubble(t, func(t *testing.T, b *fakePayments) {
		if err := b.Settle(t.Context()); err != nil {
			t.Errorf("nothing is owed: %v", err)
		}
		b.setPaid(true)
		b.Add("k", "v", time.Now().Add(time.Hour), func() bool { return true })
		time.Sleep(10 * time.Millisecond)
		b.wantPayments(t, 0)
		if err := b.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		b.wantPayments(t, 10)
		b.setPaid(false)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if b.Settle(ctx) == nil {
			t.Error("allPaid, but not paid")
		}
		b.wantPayments(t, 10, 60)
		b.setPaid(true)
		if err := b.Settle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
