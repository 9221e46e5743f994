package removals

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bench runs removals whose payments are noted, and succeed if paid says so.
type bench struct {
	*Removals[string]
	began time.Time

	mu       sync.Mutex
	paid     bool
	payments []time.Duration
}

// inBubble runs a test with removals that are paid.
func inBubble(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{began: time.Now()}
		b.Removals = New(Options[string]{
			Pay: func(context.Context, string, string) bool {
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

// set has payments succeed or fail from now on.
func (b *bench) set(paid bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid = paid
}

// wantPayments compares when payments were made, in milliseconds, and forgets them.
func (b *bench) wantPayments(t *testing.T, want ...int) {
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

// TestRemovals: what is owed is due at once, then again after pauses that grow to a second. Once a
// majority has answered it is paid each second while the version may still arrive, and then
// forgotten.
func TestRemovals(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var mu sync.Mutex
		open := true
		mayArrive := func() bool { mu.Lock(); defer mu.Unlock(); return open }
		for range 2 { // the second time it is known
			if !b.Add("k", "v", time.Now().Add(time.Minute), mayArrive) || b.Len() != 1 || !b.Owes("k", "v") || b.Owes("k", "w") {
				t.Fatalf("%d are owed, want 1", b.Len())
			}
		}
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 0, 50, 150, 350, 750, 1550)
		b.set(true)
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 2550, 3550)
		mu.Lock()
		open = false
		mu.Unlock()
		time.Sleep(2 * time.Second)
		b.wantPayments(t, 4550)
		if b.Owes("k", "v") || b.Len() != 0 || b.bytes != 0 || b.unpaid != 0 {
			t.Errorf("paid, %d are owed, %d bytes, %d unpaid", b.Len(), b.bytes, b.unpaid)
		}
	})
}

// TestRemovalsEndWithTheLease: a version whose lease is over is owed nothing.
func TestRemovalsEndWithTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.Add("k", "v", time.Now().Add(100*time.Millisecond), nil)
		time.Sleep(time.Second)
		b.wantPayments(t, 0, 50)
		if b.Len() != 0 || b.unpaid != 0 {
			t.Errorf("%d are owed", b.Len())
		}
	})
}

// TestRemovalsAreBounded: beyond its bounds nothing is remembered.
func TestRemovalsAreBounded(t *testing.T) {
	r := New(Options[string]{Size: func(key string) int { return len(key) }})
	large := string(make([]byte, mostBytes/2))
	for i, want := range []bool{true, true, false} {
		if got := r.Add(large[i+1:], "v", time.Now().Add(time.Hour), nil); got != want {
			t.Errorf("removal %d: %v", i, got)
		}
	}
}

// TestSettle: all are due at once, and Settle waits until each was paid after it was called, or its
// context ends.
func TestSettle(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		if err := b.Settle(t.Context()); err != nil {
			t.Errorf("nothing is owed: %v", err)
		}
		b.set(true)
		b.Add("k", "v", time.Now().Add(time.Hour), func() bool { return true })
		time.Sleep(10 * time.Millisecond)
		b.wantPayments(t, 0)
		if err := b.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		b.wantPayments(t, 10)
		b.set(false)
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		defer cancel()
		if b.Settle(ctx) == nil {
			t.Error("settled, but not paid")
		}
		b.wantPayments(t, 10, 60)
		b.set(true)
		if err := b.Settle(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
