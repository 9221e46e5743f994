//go:build integration

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/kit"
)

// load lets clients that know only the proxies write data and take locks until the test ends.
type load struct {
	clients []*redis.ClusterClient // one for each proxy
	workers sync.WaitGroup
	stop    context.CancelFunc

	writes, grants atomic.Int64
	mu             sync.Mutex
	holders        map[string]bool // held locks, by key
	errors         map[string]int  // errors of data commands, by text without addresses
	lockErrors     map[string]int
	violations     []string
}

const loadClients, loadLocks = 8, 5

// startLoad starts the clients. proxies holds the addresses of the proxies among which it divides
// the clients.
func startLoad(t *testing.T, proxies ...string) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{stop: stop, holders: map[string]bool{}, errors: map[string]int{}, lockErrors: map[string]int{}}
	for _, addr := range proxies {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{addr}, DialTimeout: time.Second, ReadTimeout: 2 * time.Second, ClusterStateReloadInterval: time.Second,
		})
		t.Cleanup(func() { _ = client.Close() })
		l.clients = append(l.clients, client)
	}
	for i := range loadClients {
		client := l.clients[i%len(l.clients)]
		l.workers.Go(func() { l.write(ctx, client) })
		l.workers.Go(func() { l.lock(ctx, client) })
	}
	t.Cleanup(func() { stop(); l.workers.Wait() })
	return l
}

// end stops the clients, and fails the test if a lock was held twice, or if a data command got an
// error that the cluster itself would not return.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	l.workers.Wait()
	t.Logf("%d writes, %d grants; errors of data: %v; of locks: %v", l.writes.Load(), l.grants.Load(), l.errors, l.lockErrors)
	for _, wrong := range l.violations {
		t.Error(wrong)
	}
	for text := range l.errors {
		if !isClusterError(text) {
			t.Errorf("a data command got %q", text)
		}
	}
	if l.grants.Load() == 0 || l.writes.Load() == 0 {
		t.Error("the load did nothing")
	}
}

// isClusterError reports whether a client of the cluster itself may get this error while nodes
// change. Errors of connections are among these errors.
func isClusterError(text string) bool {
	return slices.ContainsFunc([]string{
		"CLUSTERDOWN", "TRYAGAIN", "READONLY", "LOADING", "MASTERDOWN", "MOVED", "ASK", "EOF", "connection refused",
		"connection reset", "broken pipe", "i/o timeout", "context canceled", "closed network connection", "redis: client is closed",
	}, func(part string) bool { return strings.Contains(text, part) })
}

func (l *load) countError(counts map[string]int, err error) {
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		text = op.Err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	counts[text]++
}

func (l *load) write(ctx context.Context, client *redis.ClusterClient) {
	for ctx.Err() == nil {
		if err := client.Set(ctx, fmt.Sprint("data:", rand.IntN(10000)), "v", 0).Err(); err != nil && ctx.Err() == nil {
			l.countError(l.errors, err)
			time.Sleep(10 * time.Millisecond) // leaves the processor to the servers while they fail
			continue
		}
		l.writes.Add(1)
	}
}

// releaseScript is the usual script with which a client releases its own lock.
const releaseScript = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"

func (l *load) lock(ctx context.Context, client *redis.ClusterClient) {
	for ctx.Err() == nil {
		key, token := fmt.Sprint("lock:", rand.IntN(loadLocks)), fmt.Sprint(rand.Int64())
		granted, err := client.SetNX(ctx, key, token, 30*time.Second).Result()
		if err != nil && ctx.Err() == nil {
			l.countError(l.lockErrors, err)
			// SET may have taken the lock although it failed.
			_ = client.Eval(context.WithoutCancel(ctx), releaseScript, []string{key}, token).Err()
		}
		if !granted {
			time.Sleep(time.Millisecond)
			continue
		}
		l.grants.Add(1)
		l.hold(key)
		for client.Eval(context.WithoutCancel(ctx), releaseScript, []string{key}, token).Err() != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// hold holds a lock for a moment, and records a violation if another client holds it, too.
func (l *load) hold(key string) {
	l.mu.Lock()
	if l.holders[key] {
		l.violations = append(l.violations, key+" was granted twice")
	}
	l.holders[key] = true
	l.mu.Unlock()
	time.Sleep(time.Millisecond) // gives a rival time to be granted the lock, too
	l.mu.Lock()
	delete(l.holders, key)
	l.mu.Unlock()
}

// awaitWrites waits until clients can write many keys in different slots.
func (l *load) awaitWrites(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() error {
		for i := range 100 * len(l.clients) {
			if err := l.clients[i%len(l.clients)].Set(t.Context(), fmt.Sprint("probe:", i), "v", 0).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
