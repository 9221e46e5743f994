package locks

import (
	"context"
	"fmt"
	"io"
	"time"
)

// scenario describes one kind of work and its goals.
type scenario struct {
	name      string
	title     string
	clients   int
	shared    bool          // all clients use one key
	thinkTime time.Duration // mean pause between an unlock and the next lock
	goals     []goal
}

func allScenarios() []scenario {
	return []scenario{
		{name: "c1", title: "1 client", clients: 1, goals: []goal{
			atMost(ratioLock50Redsync, 1), atMost(ratioPair50Redsync, 1), atLeast(ratioRateLockKeys, 0.8),
		}},
		{name: "c16", title: "16 clients, a key each", clients: 16, goals: []goal{
			atLeast(ratioRateLockKeys, 0.8),
		}},
		{name: "c64", title: "64 clients, a key each", clients: 64, goals: []goal{
			atLeast(ratioRateRedsync, 10), atLeast(ratioRateDirect, 0.5),
			atLeast(ratioRateLockKeys, 0.8), atLeast(ratioRateReentrant, 0.5),
			atLeast(ratioRateShared, 0.5), atLeast(ratioRateSlots, 0.5), atLeast(ratioRateReaders, 0.3),
		}},
		{name: "one-key", title: "64 clients, one key", clients: 64, shared: true, goals: []goal{
			atLeast(ratioRateRedsync, 5),
		}},
		{name: "c256", title: "256 clients, a key each", clients: 256},
		{name: "c1024", title: "1,024 clients, a key each", clients: 1024},
		// Without a pause, one polling client may lock again and again while the other clients
		// sleep, which is fast, but serves only one client. With a pause, the lock must change
		// hands.
		{name: "one-key-pause", title: "64 clients, one key, 5 ms between unlock and lock",
			clients: 64, shared: true, thinkTime: 5 * time.Millisecond, goals: []goal{
				atLeast(ratioRateRedsync, 5),
			}},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range allScenarios() {
		names = append(names, s.name)
	}
	return names
}

// results holds the outcome of each round, by contender.
type results map[string][]outcome

func runScenario(
	ctx context.Context, f *fleet, set settings, client clientKind, s scenario, log io.Writer,
) (results, error) {
	all := results{}
	for round := range set.rounds {
		for i := range set.contenders {
			name := set.contenders[(i+round)%len(set.contenders)]
			got, err := runOnce(ctx, f, set, client, s, name, round)
			if err != nil {
				return nil, fmt.Errorf("%s, %s, %s client: %w", s.name, name, client, err)
			}
			all[name] = append(all[name], got)
			fmt.Fprintf(log, "%s client, %s, round %d, %s: %.0f pairs/s, LOCK p50 %v p99 %v, errors %d, "+
				"others took %.2f cores\n",
				client, s.name, round+1, name, got.rate, got.lockP50, got.lockP99, got.errorCount(), got.otherCores)
		}
	}
	return all, nil
}

// runOnce lets one contender work for one window.
func runOnce(
	ctx context.Context, f *fleet, set settings, client clientKind, s scenario, name string, round int,
) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, warmUp+set.window+drainLimit)
	defer cancel()
	// No earlier run used keys with this prefix.
	prefix := fmt.Sprintf("%s%s:%s:%s:%d:", keyPrefix, client, s.name, name, round)
	group, err := openSessions(ctx, f, client, name, s, prefix)
	if err != nil {
		return outcome{}, err
	}
	defer group.close()
	work := load{length: set.window, thinkTime: max(set.thinkTime, s.thinkTime), shared: s.shared}
	record, err := work.run(ctx, f, group.sessions)
	if err != nil {
		return outcome{}, err
	}
	return record.outcome(), context.Cause(ctx)
}

const (
	// warmUp is the time between the first request and the window. In this time, go-redis opens its
	// connections.
	warmUp = 500 * time.Millisecond
	// drainLimit limits the time after the window in which the last locks of a run must be granted.
	drainLimit = time.Minute
)
