package scripts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

// replyTimeout limits a client's wait for a reply.
const replyTimeout = 30 * time.Second

// outcome holds the figures of one measurement.
type outcome struct {
	lockTimes     []time.Duration // duration of each LOCK
	scriptReplies map[string]int  // the numbers of replies to the scripts, by their first words
}

// percentile returns a percentile of the durations of LOCK, in ms.
func (o outcome) percentile(p int) float64 { return figures.Millis(figures.Percentile(o.lockTimes, p)) }

// measure lets the lockers work for the window, while the given number of clients run scripts. The
// scripts begin a second earlier.
func measure(ctx context.Context, set settings, proxy *harness.Proxy, scripts int) (outcome, error) {
	var stopping atomic.Bool
	attack := startScripts(set, proxy, scripts, &stopping)
	if scripts > 0 {
		_ = suite.Pause(ctx, time.Second)
	}
	var lockers sync.WaitGroup
	took, failed := make([][]time.Duration, set.lockers), make([]error, set.lockers)
	until := time.Now().Add(set.window)
	for i := range set.lockers {
		lockers.Go(func() { took[i], failed[i] = lockRepeatedly(ctx, proxy, strconv.Itoa(i), until) })
	}
	lockers.Wait()
	stopping.Store(true)
	replies, err := attack.wait()
	return outcome{slices.Concat(took...), replies}, errors.Join(append(failed, err, context.Cause(ctx))...)
}

// lockRepeatedly locks and unlocks a key of its own until the given time. It returns the duration
// of each LOCK.
func lockRepeatedly(ctx context.Context, proxy *harness.Proxy, name string, until time.Time) (durations []time.Duration, err error) {
	client, err := redistest.Dial(proxy.Addr(), replyTimeout)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for time.Now().Before(until) && ctx.Err() == nil {
		sent := time.Now()
		reply, err := client.Do("LOCK", "own:"+name, "token", "PX", "10000")
		durations = append(durations, time.Since(sent))
		if _, granted := reply.(int64); err != nil || !granted {
			return nil, fmt.Errorf("LOCK: %v, %w", reply, err)
		}
		if reply, err := client.Do("UNLOCK", "own:"+name, "token"); err != nil || reply != any(int64(1)) {
			return nil, fmt.Errorf("UNLOCK: %v, %w", reply, err)
		}
	}
	return durations, nil
}

// scriptClients holds the clients that run scripts.
type scriptClients struct {
	workers sync.WaitGroup
	mu      sync.Mutex
	replies map[string]int
	err     error
}

func startScripts(set settings, proxy *harness.Proxy, n int, stopping *atomic.Bool) *scriptClients {
	a := &scriptClients{replies: map[string]int{}}
	for i := range n {
		a.workers.Go(func() {
			if err := a.runScripts(set, proxy, i, stopping); err != nil {
				a.mu.Lock()
				defer a.mu.Unlock()
				a.err = errors.Join(a.err, err)
			}
		})
	}
	return a
}

func (a *scriptClients) runScripts(set settings, proxy *harness.Proxy, i int, stopping *atomic.Bool) error {
	client, err := redistest.Dial(proxy.Addr(), replyTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	for !stopping.Load() {
		reply, err := client.Do("EVAL", set.body, "1", "lock:"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.replies[firstWords(fmt.Sprint(reply))]++
		a.mu.Unlock()
	}
	return nil
}

func (a *scriptClients) wait() (map[string]int, error) {
	a.workers.Wait()
	return a.replies, a.err
}

// firstWords returns the first three words of a reply, which identify its kind.
func firstWords(reply string) string {
	words := strings.Fields(reply)
	return strings.Join(words[:min(3, len(words))], " ")
}
