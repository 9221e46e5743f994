// Package all measures the main ratios and figures with a goal, and prints one table:
//
//	go run ./integration/bench all
//	go run ./integration/bench all -rounds 1 -seconds 1 -plot docs/locks.svg
//
// The package comments of locks, handover and relay describe the measurements; locks uses the raw
// client. Not included are the other benchmarks, the scenarios one-key of locks, and the flags
// -idle and -connects of relay. The plot shows throughput and latency of locks over the number of
// clients. Package figures draws the plot, because a plot library would add a dozen modules.
package all

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/handover"
	"redlock-proxy/integration/bench/locks"
	"redlock-proxy/integration/bench/relay"
	"redlock-proxy/integration/bench/suite"
)

// Command returns the benchmark of the main goals.
func Command() *cli.Command {
	return suite.Command("all", "all goals in one table, and a plot", []cli.Flag{
		suite.RoundsFlag(3), suite.SecondsFlag(3), suite.ProxyFlag(),
		&cli.IntFlag{Name: "requests", Value: 200_000, Usage: "requests of a run of the relay at -P 1"},
		&cli.StringFlag{Name: "plot", Usage: "file for a plot of locks, as SVG"},
	}, func(c *cli.Context) error {
		set := settings{
			commandLine: suite.CommandLine(c), rounds: suite.Rounds(c), window: suite.Window(c), binary: suite.Binary(c),
			requests: c.Int("requests"), plotFile: c.String("plot"),
		}
		if min(set.rounds, set.requests) < 1 || set.window <= 0 {
			return errors.New("rounds, seconds and requests must be positive")
		}
		return run(c.Context, set, c.App.Writer, c.App.ErrWriter)
	})
}

type settings struct {
	commandLine string // the command line of this run
	rounds      int
	window      time.Duration
	binary      string // path of the proxy; empty: build it
	requests    int    // requests of a run of the relay at -P 1
	plotFile    string // empty: none
}

// run measures the figures of the table. It prints the table to out and progress to log.
func run(ctx context.Context, set settings, out, log io.Writer) error {
	fmt.Fprintf(out, "## Benchmark: all goals\n\n%s.\nMedians of %d rounds. Made by `%s`.\n",
		figures.ReadMachine().Header("load generators, proxies and all Redis servers"), set.rounds, set.commandLine)
	ofLocks, curves, err := locks.Summary(ctx, set.binary, set.rounds, set.window, log)
	if err != nil {
		return err
	}
	if err := writePlot(set.plotFile, curves); err != nil {
		return err
	}
	ofHandovers, err := handover.Summary(ctx, set.binary, set.rounds, set.window, log)
	if err != nil {
		return err
	}
	ofRelay, err := relay.Summary(ctx, set.binary, set.rounds, set.requests, log)
	if err != nil {
		return err
	}
	tally := &figures.Tally{}
	figures.WriteLines(out, slices.Concat(ofLocks, ofHandovers, ofRelay), tally)
	tally.Write(out)
	return nil
}

// writePlot writes the plot to path, unless path is empty.
func writePlot(path string, curves []figures.Curves) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(figures.WriteSVG(f, curves...), f.Close())
}
