package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// startWaiter requests the job in the background, and appends its token to servedTokens when the
// request ends. The suffix " gave up" or " left" marks a request that was not granted.
func (b *fixture) startWaiter(ctx context.Context, l *Locker, token string, wait time.Duration, servedTokens *[]string) {
	go func() {
		_, err := l.Lock(ctx, LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour, Wait: wait})
		switch {
		case errors.Is(err, ErrHeld):
			token += " gave up"
		case err != nil:
			token += " left"
		}
		*servedTokens = append(*servedTokens, token)
	}()
	synctest.Wait()
}

func TestWaiterOrder(t *testing.T) {
	runInBubble(t, 5, func(b *fixture) {
		b.mustLock("holder", time.Hour)
		var servedTokens, want []string
		for i := range 10 {
			b.startWaiter(b.Context(), b.locker, fmt.Sprint(i), NoWaitLimit, &servedTokens)
			want = append(want, fmt.Sprint(i))
		}
		holder := "holder"
		for i := range 10 {
			b.wantErr(b.locker.Unlock(b.Context(), job, holder), nil)
			synctest.Wait()
			if len(servedTokens) != i+1 {
				b.Fatalf("after release %d: served %q", i, servedTokens)
			}
			holder = servedTokens[i]
		}
		if !slices.Equal(servedTokens, want) {
			b.Errorf("served %q, want %q", servedTokens, want)
		}
		if waits, _ := b.locker.queues.HasWaiter(job); waits {
			b.Error("a queue is left behind")
		}
	})
}

func TestWaitTimeout(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock("holder", time.Hour)
		start := time.Now()
		_, err := b.locker.Lock(b.Context(),
			LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour, Wait: 300 * time.Millisecond})
		b.wantErr(err, ErrHeld)
		if elapsed := time.Since(start); elapsed != 300*time.Millisecond {
			b.Errorf("waited %v, want 300ms", elapsed)
		}
		b.wantValues("holder", "holder", "holder")
	})
}

func TestCancelledWaiter(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.mustLock("holder", time.Hour)
		var served []string
		ctx, cancel := context.WithCancel(b.Context())
		b.startWaiter(ctx, b.locker, "head", NoWaitLimit, &served)
		b.startWaiter(b.Context(), b.locker, "second", NoWaitLimit, &served)
		cancel()
		synctest.Wait()
		b.wantErr(b.locker.Unlock(b.Context(), job, "holder"), nil)
		synctest.Wait()
		if want := []string{"head left", "second"}; !slices.Equal(served, want) {
			b.Errorf("served %q, want %q", served, want)
		}
		b.wantValues("second", "second", "second")
	})
}

func TestWaitUntilExpiry(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.putPlain("dead client", time.Second, 0, 1, 2)
		var served []string
		start := time.Now()
		b.startWaiter(b.Context(), b.locker, token, NoWaitLimit, &served)
		time.Sleep(time.Second + 32*time.Millisecond) // the longest pause between two tries
		synctest.Wait()
		if len(served) != 1 {
			b.Errorf("not served %v after the expiry", time.Since(start)-time.Second)
		}
	})
}

// TestLockWithoutWait checks that a request without a wait does not overtake
// waiters, even if the lock is free for a moment.
func TestLockWithoutWait(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		b.putPlain("dead client", time.Second, 0, 1, 2)
		var served []string
		b.startWaiter(b.Context(), b.locker, "waiter", NoWaitLimit, &served)
		b.putPlain("", -time.Second, 0, 1, 2)
		_, err := b.lock("hasty", time.Second)
		b.wantErr(err, ErrHeld)
		time.Sleep(time.Second)
		synctest.Wait()
		if want := []string{"waiter"}; !slices.Equal(served, want) {
			b.Errorf("served %q, want %q", served, want)
		}
	})
}

// TestWaitersWithoutQuorum checks that waiters stay in the queue while there is no quorum,
// and get the lock when there is one. A waiter whose time passes meanwhile, and a request without a
// wait, get NOQUORUM, not the reply that another client holds the lock.
func TestWaitersWithoutQuorum(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		for _, m := range b.masters {
			m.refuseConnections()
		}
		var served []string
		b.startWaiter(b.Context(), b.locker, "0", NoWaitLimit, &served)
		_, err := b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour, Wait: time.Second})
		b.wantNoQuorum(err)
		_, err = b.locker.Lock(b.Context(), LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour})
		b.wantNoQuorum(err)
		for _, m := range b.masters {
			m.acceptConnections()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(served, []string{"0"}) {
			b.Errorf("served: %q", served)
		}
	})
}

// setPeer informs a locker of another proxy, as its guards would.
func setPeer(l, other *Locker) {
	l.queues.Peers = peerWaiters{l.Cluster, l.source.Attempt(), func() []string { return []string{other.proxyID} }}
}

// TestBusyLockOfTwoProxies checks that the waiters of a busy process leave the lock to the
// waiters of another process.
func TestBusyLockOfTwoProxies(t *testing.T) {
	runInBubble(t, 3, func(b *fixture) {
		other := NewLocker(b.newCluster())
		setPeer(b.locker, other)
		setPeer(other, b.locker)
		served := map[string]int{}
		ctx, stop := context.WithTimeout(b.Context(), 10*time.Second)
		defer stop()
		work := func(l *Locker, proxy string, n int) {
			token := fmt.Sprint(proxy, n)
			for {
				_, err := l.Lock(ctx, LockRequest{Keys: []Key{job}, Token: token, TTL: time.Hour, Wait: NoWaitLimit})
				if err != nil {
					return
				}
				served[proxy]++ // only the holder runs this
				time.Sleep(5 * time.Millisecond)
				_ = l.Unlock(b.Context(), job, token)
			}
		}
		for n := range 4 {
			go work(b.locker, "a", n)
			go work(other, "b", n)
		}
		<-ctx.Done()
		synctest.Wait()
		time.Sleep(time.Second)
		if served["a"] < 200 || served["b"] < 200 {
			b.Errorf("grants in 10 s: %v, want some hundreds for each", served)
		}
	})
}
