//go:build integration

package moving

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/integration/kit"
	"redlock-proxy/internal/redistest"
)

const (
	// redsyncExpiry is the expiry of the locks. redsync waits for 5 % of it, which is less than the
	// time for which a move pauses commands.
	redsyncExpiry = 8 * time.Second
	// redsyncClientCount is the number of concurrent clients, each with its own key.
	redsyncClientCount = 16
	// redsyncMoves is the number of moves, and of moves back.
	redsyncMoves = 2
)

// TestRedsyncDuringMove checks the effect of a move on clients of redsync with locks of 8 s. By
// default, go-redis ignores the time limit that redsync sets for a command, so no client gets an
// error. With ContextTimeoutEnabled, a command fails after 0.4 s. Then Lock tries again, and
// TryLock returns an error. If redsync's release after the error fails as well, the lock stays
// until it expires, and TryLock reports it as taken.
func TestRedsyncDuringMove(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	const timeoutError, takenError = "TryLock: no answer in time", "TryLock: taken"
	for name, test := range map[string]struct {
		contextTimeout bool
		factor         float64 // the part of the expiry for which redsync waits
		want           []string
	}{
		"default":               {false, 0.05, nil},
		"ContextTimeoutEnabled": {true, 0.05, []string{timeoutError, takenError}},
		"ContextTimeoutEnabled and WithTimeoutFactor": {true, 0.5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, upstream: kit.StartRedis(t, redistest.DurableArgs()...), masters: kit.StartMasters(t)[:3]}
			r.args = slices.Concat(kit.LockKeyArgs(r.upstream), kit.LongMasterTimeoutArgs(), []string{"--move-from-upstream"})
			r.addProxy(r.args...)
			r.addProxy(r.args...)
			r.wantVoting()
			l := startRedsyncGroup(t, r, test.contextTimeout, test.factor)
			for range redsyncMoves {
				l.moveUnderLoad(t, r)
				l.moveUnderLoad(t, r, backFlag)
			}
			l.stop()
			t.Logf("%s; slowest lock %v; errors of %d moves: %s", formatCounts(l.calls), l.maxDuration.Round(time.Millisecond),
				2*redsyncMoves, formatCounts(l.errors))
			for failure := range l.errors {
				if !slices.Contains(test.want, failure) && !isSlowMachine(failure) {
					t.Errorf("%d × %s", l.errors[failure], failure)
				}
			}
		})
	}
}

// moveUnderLoad moves the locks while the clients are running.
func (l *redsyncGroup) moveUnderLoad(t *testing.T, r *rig, flags ...string) {
	t.Helper()
	time.Sleep(time.Second) // clients keep running
	t.Log(strings.ReplaceAll(strings.TrimSpace(r.mustMove(0, flags...)), "\n", " | "))
	time.Sleep(time.Second) // clients keep running
}

// redsyncGroup is a group of clients of redsync, and their records.
type redsyncGroup struct {
	stopping atomic.Bool
	workers  sync.WaitGroup

	mu            sync.Mutex
	calls, errors map[string]int
	maxDuration   time.Duration
}

func startRedsyncGroup(t *testing.T, r *rig, contextTimeout bool, factor float64) *redsyncGroup {
	t.Helper()
	l := &redsyncGroup{calls: map[string]int{}, errors: map[string]int{}}
	var proxies []*redsync.Redsync
	for _, proxy := range r.proxies {
		client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: contextTimeout,
			ReadTimeout: kit.WaitLimit})
		t.Cleanup(func() { kit.NoError(t, client.Close()) })
		proxies = append(proxies, redsync.New(goredis.NewPool(client)))
	}
	for i := range redsyncClientCount {
		mutex := proxies[i%2].NewMutex(fmt.Sprint("lock:redsync:", i), redsync.WithExpiry(redsyncExpiry),
			redsync.WithTimeoutFactor(factor))
		if i/2%2 == 0 {
			l.workers.Go(func() { l.lockRepeatedly(mutex, "Lock", mutex.Lock) })
		} else {
			l.workers.Go(func() { l.lockRepeatedly(mutex, "TryLock", mutex.TryLock) })
		}
	}
	return l
}

// lockRepeatedly takes a mutex, extends it and releases it, repeatedly, until stop is called.
func (l *redsyncGroup) lockRepeatedly(mutex *redsync.Mutex, call string, take func() error) {
	for !l.stopping.Load() {
		startedAt := time.Now()
		err := take()
		l.countCall(call, err, time.Since(startedAt))
		if err == nil {
			_, err = mutex.Extend()
			l.countCall("Extend", err, 0)
			_, err = mutex.Unlock()
			l.countCall("Unlock", err, 0)
		}
		time.Sleep(5 * time.Millisecond) // sets the pace of a client
	}
}

// stop stops the clients.
func (l *redsyncGroup) stop() {
	l.stopping.Store(true)
	l.workers.Wait()
}

// countCall counts the result of a call, and records the duration if it is the longest.
func (l *redsyncGroup) countCall(call string, err error, elapsed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.calls[call]++
	} else {
		l.errors[call+": "+errorKind(err)]++
	}
	l.maxDuration = max(l.maxDuration, elapsed)
}

// errorKind returns an error of redsync without its variable parts.
func errorKind(err error) string {
	var taken *redsync.ErrTaken
	var node *redsync.ErrNodeTaken
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &taken), errors.As(err, &node):
		return "taken"
	}
	return err.Error()
}
