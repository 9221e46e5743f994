package faults

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/harness"
	"redlock-proxy/internal/redistest"
)

const (
	warmUp       = 500 * time.Millisecond
	replyTimeout = 5 * time.Second
	// recoveryTimeout limits the time until a proxy uses all masters again after a fault.
	recoveryTimeout = 10 * time.Second
)

// outcome holds the figures of one measurement.
type outcome struct {
	p50, p99   time.Duration
	rate       float64 // locks per second
	errorCount int
}

// load runs clients that lock and unlock.
type load struct {
	workers      sync.WaitGroup
	measuring    atomic.Bool
	ended        atomic.Bool
	measureStart time.Time

	mu         sync.Mutex
	times      []time.Duration
	errorCount int
}

func startLoad(proxy *harness.Proxy, clients int) (*load, error) {
	l := &load{}
	for i := range clients {
		client, err := redistest.Dial(proxy.Addr(), replyTimeout)
		if err != nil {
			l.stop()
			return nil, err
		}
		l.workers.Go(func() {
			defer client.Close()
			l.lockRepeatedly(client, "key:"+strconv.Itoa(i))
		})
	}
	return l, nil
}

func (l *load) startMeasuring() {
	l.measureStart = time.Now()
	l.measuring.Store(true)
}

// stop stops the clients and returns the outcome.
func (l *load) stop() outcome {
	took := time.Since(l.measureStart)
	l.ended.Store(true)
	l.workers.Wait()
	return outcome{
		p50: figures.Percentile(l.times, 50), p99: figures.Percentile(l.times, 99),
		rate: float64(len(l.times)) / took.Seconds(), errorCount: l.errorCount,
	}
}

// lockRepeatedly locks and unlocks until stop is called.
func (l *load) lockRepeatedly(client *redistest.Client, key string) {
	var times []time.Duration
	fails := 0
	for turn := 0; !l.ended.Load(); turn++ {
		counts := l.measuring.Load()
		took, err := lockAndUnlock(client, key, strconv.Itoa(turn))
		switch {
		case err != nil:
			fails++
			time.Sleep(time.Millisecond) // the next command may fail immediately
		case counts:
			times = append(times, took)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times = append(l.times, times...)
	l.errorCount += fails
}

// lockAndUnlock locks and unlocks once. It returns the duration of LOCK.
func lockAndUnlock(client *redistest.Client, key, token string) (time.Duration, error) {
	sent := time.Now()
	reply, err := client.Do("LOCK", key, token, "PX", "10000")
	took := time.Since(sent)
	if err != nil {
		return 0, err
	}
	if validity, ok := reply.(int64); !ok || validity <= 0 {
		return 0, fmt.Errorf("LOCK: got %v, want a validity", reply)
	}
	reply, err = client.Do("UNLOCK", key, token)
	if err == nil && reply != any(int64(1)) {
		err = fmt.Errorf("UNLOCK: got %v, want 1", reply)
	}
	return took, err
}

// errNotRecovered means that a proxy does not use all masters within recoveryTimeout.
var errNotRecovered = errors.New("not all masters are used again")

// waitHealthy waits until both proxies use all masters.
func (f *fleet) waitHealthy() error {
	for _, proxy := range []*harness.Proxy{f.directProxy, f.linkedProxy} {
		client, err := redistest.Dial(proxy.Addr(), replyTimeout)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := waitMastersUp(client, len(f.Masters)); err != nil {
			return err
		}
	}
	return nil
}

// waitMastersUp waits until a proxy reports the given number of masters as up.
func waitMastersUp(client *redistest.Client, masters int) error {
	line := fmt.Sprintf("redlock_masters_up:%d\r\n", masters)
	for deadline := time.Now().Add(recoveryTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		reply, err := client.Do("INFO", "redlock")
		if err != nil {
			return err
		}
		if info, _ := reply.(string); strings.Contains(info, line) {
			return nil
		}
	}
	return errNotRecovered
}
