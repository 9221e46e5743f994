package proxy

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"redlock-proxy/quorum"
	"redlock-proxy/quorum/master"
)

// scriptedLocks grants locks by a function of the test, and records which locks were released.
type scriptedLocks struct {
	lock func(ctx context.Context, req quorum.LockRequest) (time.Duration, error)

	mu       sync.Mutex
	released []string
}

func (l *scriptedLocks) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	if l.lock == nil {
		return quorum.GrantedLock{Validity: req.TTL, Version: req.Token}, nil
	}
	validity, err := l.lock(ctx, req)
	return quorum.GrantedLock{Validity: validity, Version: req.Token}, err
}

func (l *scriptedLocks) Unlock(ctx context.Context, key quorum.Key, token string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.Withdraw([]quorum.Key{key}, quorum.GrantedLock{Version: token})
	return nil
}

func (*scriptedLocks) Fence(context.Context, quorum.Key) (int64, error) { return 0, nil }

func (*scriptedLocks) AwaitPop(context.Context, quorum.BlockedPop) error {
	return quorum.ErrPopTimeout
}

func (*scriptedLocks) WaiterCount() int { return 0 }

func (l *scriptedLocks) Withdraw(keys []quorum.Key, got quorum.GrantedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.released = append(l.released, key.Name+"="+got.Version)
	}
}

func (l *scriptedLocks) Extend(_ context.Context, _ quorum.Key, _ string, ttl time.Duration) (quorum.GrantedLock, error) {
	return quorum.GrantedLock{Validity: ttl}, nil
}

func (l *scriptedLocks) ExtendTogether(_ context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	return make([]quorum.GrantedLock, len(requests))
}

// releasedLocks returns the locks released so far, as key=token.
func (l *scriptedLocks) releasedLocks() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.released...)
}

// waitingLocks delays each LOCK with BLOCK until the test grants it, or its context ends.
type waitingLocks struct {
	scriptedLocks
	waitingTokens chan string   // the token of each LOCK that begins to wait
	grants        chan struct{} // one value for each LOCK to grant
	endCauses     chan error    // the cancellation cause of each LOCK that was not granted
}

func newWaitingLocks() *waitingLocks {
	l := &waitingLocks{waitingTokens: make(chan string, 100), grants: make(chan struct{}), endCauses: make(chan error, 100)}
	l.lock = func(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
		if req.Wait == 0 {
			return req.TTL, nil
		}
		l.waitingTokens <- req.Token
		select {
		case <-l.grants:
			return req.TTL, nil
		case <-ctx.Done():
			l.endCauses <- context.Cause(ctx)
			return 0, context.Cause(ctx)
		}
	}
	return l
}

// reportingLocks sends the token and the error of each LOCK to results.
type reportingLocks struct {
	*quorum.Locker
	results chan string
}

func (l reportingLocks) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	got, err := l.Locker.Lock(ctx, req)
	l.results <- fmt.Sprintf("%s: %v", req.Token, err)
	return got, err
}

// startMasters starts n embedded masters, and a locker over them.
func startMasters(t *testing.T, n int) (locker *quorum.Locker, servers []*miniredis.Miniredis) {
	t.Helper()
	var urls []string
	for range n {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		servers = append(servers, m)
		urls = append(urls, "redis://"+m.Addr())
	}
	// The timeout is long enough for a busy machine.
	cluster, err := quorum.NewCluster(quorum.Options{Masters: urls, Access: master.Access{Timeout: testTimeout}, Unguarded: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = cluster.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	ready, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	if !cluster.WaitReady(ready) {
		t.Fatal("the masters do not answer")
	}
	return quorum.NewLocker(cluster), servers
}
