package handover

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

	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/internal/redistest"
)

// warmUp is the time between the first request and the window.
const warmUp = time.Second

// grant describes one grant to a client; times count from the beginning of the window.
type grant struct {
	client int
	// releaseTime is the time just before the lock was released.
	requestTime, grantTime, releaseTime time.Duration
}

// runContest lets all clients lock and unlock until a window has ended. It returns all grants in
// order, including those before and after the window.
func runContest(ctx context.Context, set settings, sessions []session) ([]grant, error) {
	begin := time.Now().Add(warmUp)
	var ended atomic.Bool
	parts, failed := make([][]grant, len(sessions)), make([]error, len(sessions))
	var workers sync.WaitGroup
	for i, s := range sessions {
		workers.Go(func() {
			for !ended.Load() && ctx.Err() == nil && failed[i] == nil {
				g := grant{client: i, requestTime: time.Since(begin)}
				if failed[i] = s.lock(ctx); failed[i] != nil {
					return
				}
				g.grantTime = time.Since(begin)
				pauseFor(ctx, set.hold)
				g.releaseTime = time.Since(begin)
				parts[i] = append(parts[i], g)
				failed[i] = s.unlock(ctx)
				pauseFor(ctx, set.pause)
			}
		})
	}
	err := suite.Pause(ctx, warmUp+set.window)
	ended.Store(true)
	workers.Wait()
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b grant) int { return int(a.grantTime - b.grantTime) })
	return all, errors.Join(append(failed, err)...)
}

func pauseFor(ctx context.Context, d time.Duration) {
	if d > 0 {
		_ = suite.Pause(ctx, d)
	}
}

// settlePause is the pause before commandRate counts commands, so that earlier work ends.
const settlePause = 2 * time.Second

// idleCommandRate returns the number of commands per second at the masters while one client holds
// the lock and the other clients wait.
func idleCommandRate(ctx context.Context, f *fleet, set settings, sessions []session) (float64, error) {
	if err := sessions[0].lock(ctx); err != nil {
		return 0, err
	}
	failed := make([]error, len(sessions))
	var workers sync.WaitGroup
	for i, s := range sessions[1:] {
		workers.Go(func() {
			if failed[i] = s.lock(ctx); failed[i] == nil {
				failed[i] = s.unlock(ctx)
			}
		})
	}
	busy, err := commandRate(ctx, f, set.window)
	err = errors.Join(err, sessions[0].unlock(ctx))
	workers.Wait()
	return busy, errors.Join(append(failed, err)...)
}

// commandRate returns the number of commands per second at all masters within a window.
func commandRate(ctx context.Context, f *fleet, window time.Duration) (float64, error) {
	if err := suite.Pause(ctx, settlePause); err != nil {
		return 0, err
	}
	before, err := f.processedCommands()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := suite.Pause(ctx, window); err != nil {
		return 0, err
	}
	after, err := f.processedCommands()
	return float64(after-before) / time.Since(begin).Seconds(), err
}

// processedCommands returns the number of commands that the masters have executed.
func (f *fleet) processedCommands() (sum int64, err error) {
	for _, master := range f.Masters {
		client, err := redistest.Dial(master.Addr(), 5*time.Second)
		if err != nil {
			return 0, err
		}
		reply, err := client.Do("INFO", "stats")
		_ = client.Close()
		if err != nil {
			return 0, err
		}
		_, after, _ := strings.Cut(fmt.Sprint(reply), "total_commands_processed:")
		number, _, _ := strings.Cut(after, "\r\n")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
