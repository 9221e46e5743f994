package scripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
	"redlock-proxy/integration/harness"
)

// Command returns the benchmark of endless scripts.
func Command() *cli.Command {
	return suite.Command("scripts", "LOCK beside clients with endless scripts, and without them", []cli.Flag{
		&cli.IntFlag{Name: "lockers", Value: 16, Usage: "clients that LOCK and UNLOCK"},
		&cli.IntFlag{Name: "scripts", Value: 50, Usage: "clients that run endless scripts"},
		&cli.IntFlag{Name: "masters", Value: 5, Usage: "number of Redis masters"},
		&cli.StringFlag{Name: "body", Value: "while true do end", Usage: "body of the scripts"},
		suite.RoundsFlag(3), suite.SecondsFlag(5), suite.ProxyFlag(),
	}, run)
}

type settings struct {
	lockers, scripts, rounds, masters int
	window                            time.Duration
	binary                            string // path of the proxy; empty: build it
	body                              string // body of the endless scripts
}

// run measures everything. It prints tables to the Writer and progress to the ErrWriter.
func run(c *cli.Context) (err error) {
	set := settings{
		lockers: c.Int("lockers"), scripts: c.Int("scripts"), masters: c.Int("masters"), body: c.String("body"),
		rounds: suite.Rounds(c), window: suite.Window(c), binary: suite.Binary(c),
	}
	if min(set.lockers, set.scripts, set.rounds, set.masters) < 1 || set.window <= 0 {
		return errors.New("all numbers must be positive")
	}
	f, err := suite.StartFleet(set.masters)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	proxy, err := f.StartProxy(harness.ProxyOptions{Binary: set.binary, Args: []string{"--lock-keys", "lock:*"}})
	if err != nil {
		return err
	}
	return compareCases(c.Context, set, proxy, c.App.Writer, c.App.ErrWriter)
}

// compareCases measures both cases alternately: with and without endless scripts.
func compareCases(ctx context.Context, set settings, proxy *harness.Proxy, out, log io.Writer) error {
	fmt.Fprintf(out, "LOCK of %d clients, alone and beside %d that run `%s` on lock keys, %v each\n\n",
		set.lockers, set.scripts, set.body, set.window)
	fmt.Fprintln(out, "round  alone p50/p99 ms  locks   beside p50/p99 ms  locks   p99 ratio  script replies")
	var ratios []float64
	for round := range set.rounds {
		fmt.Fprintf(log, "round %d of %d\n", round+1, set.rounds)
		alone, err := measure(ctx, set, proxy, 0)
		if err != nil {
			return err
		}
		beside, err := measure(ctx, set, proxy, set.scripts)
		if err != nil {
			return err
		}
		ratio := beside.percentile(99) / alone.percentile(99)
		ratios = append(ratios, ratio)
		rss, _ := proxy.RSS()
		fmt.Fprintf(out, "%5d  %7.2f %7.2f  %6d   %8.2f %8.2f  %6d   %9.2f  %v; RSS %d MB\n", round+1,
			alone.percentile(50), alone.percentile(99), len(alone.lockTimes),
			beside.percentile(50), beside.percentile(99), len(beside.lockTimes), ratio, beside.scriptReplies, rss>>20)
	}
	fmt.Fprintf(out, "\np99 beside the scripts: %.2f times that alone (median of %d rounds)\n",
		figures.Median(ratios), len(ratios))
	return nil
}
