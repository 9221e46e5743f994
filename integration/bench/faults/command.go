package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
)

// Command returns the benchmark of masters that fail.
func Command() *cli.Command {
	const usage = "LOCK while 2 of 5 masters are killed, stopped or unreachable, compared with LOCK without a fault"
	return suite.Command("faults", usage, []cli.Flag{
		&cli.StringFlag{Name: "clients", Value: "1,16", Usage: "numbers of clients, each of which makes a table"},
		suite.RoundsFlag(3), suite.SecondsFlag(3), suite.ProxyFlag(),
	}, func(c *cli.Context) error {
		set, err := settingsOf(c)
		if err != nil {
			return err
		}
		return run(c.Context, set, c.App.Writer, c.App.ErrWriter)
	})
}

type settings struct {
	clients []int
	rounds  int
	window  time.Duration
	binary  string // path of the proxy; empty: build it
}

func settingsOf(c *cli.Context) (settings, error) {
	set := settings{rounds: suite.Rounds(c), window: suite.Window(c), binary: suite.Binary(c)}
	if set.rounds < 1 || set.window <= 0 {
		return settings{}, errors.New("rounds and seconds must be positive")
	}
	for text := range strings.SplitSeq(c.String("clients"), ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return settings{}, fmt.Errorf("clients: %q is not a positive number", text)
		}
		set.clients = append(set.clients, n)
	}
	return set, nil
}

// run measures everything. It prints tables to out and progress to log.
func run(ctx context.Context, set settings, out, log io.Writer) (err error) {
	f, err := startFleet(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	writeHeader(out, figures.ReadMachine(), set)
	for _, clients := range set.clients {
		results := map[string][]outcome{}
		for round := range set.rounds {
			fmt.Fprintf(log, "%d clients, round %d of %d\n", clients, round+1, set.rounds)
			if err := runRound(ctx, f, set, clients, results); err != nil {
				return err
			}
		}
		writeTable(out, clients, results)
	}
	return nil
}

// runRound measures every state once.
func runRound(ctx context.Context, f *fleet, set settings, clients int, results map[string][]outcome) error {
	for _, s := range states() {
		got, err := f.measure(ctx, s, clients, set.window)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results[s.name] = append(results[s.name], got)
	}
	return nil
}
