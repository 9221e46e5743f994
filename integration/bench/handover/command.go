package handover

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

// Command returns the benchmark of hand-overs.
func Command() *cli.Command {
	const usage = "one lock that passes between clients of several proxies, compared with redsync"
	return suite.Command("handover", usage, []cli.Flag{
		&cli.IntFlag{Name: "clients", Value: 64, Usage: "number of clients"},
		&cli.IntFlag{Name: "proxies", Value: 2, Usage: "number of proxies"},
		&cli.IntFlag{Name: "masters", Value: 5, Usage: "number of Redis masters"},
		&cli.DurationFlag{Name: "hold", Usage: "how long each client holds the lock"},
		&cli.DurationFlag{Name: "pause", Usage: "how long each client pauses between unlock and lock"},
		&cli.BoolFlag{Name: "uneven", Usage: "the first proxy has one client of eight, the others share the rest"},
		&cli.BoolFlag{Name: "goals",
			Usage: "measure only the figures with goals, with their own numbers of clients and proxies, and times"},
		suite.RoundsFlag(3), suite.SecondsFlag(3), suite.ProxyFlag(),
	}, func(c *cli.Context) error {
		set, err := settingsOf(c)
		if err != nil {
			return err
		}
		if c.Bool("goals") {
			lines, err := Summary(c.Context, set.binary, set.rounds, set.window, c.App.ErrWriter)
			if err == nil {
				fmt.Fprintf(c.App.Writer, "%s.\nMedians of %d rounds. Made by `%s`.\n",
					figures.ReadMachine().Header("load generators, proxies and all Redis servers"), set.rounds, set.commandLine)
				figures.WriteLines(c.App.Writer, lines, &figures.Tally{})
			}
			return err
		}
		return run(c.Context, set, c.App.Writer, c.App.ErrWriter)
	})
}

type settings struct {
	commandLine                       string
	clients, proxies, masters, rounds int
	hold, pause, window               time.Duration
	uneven                            bool
	binary                            string // path of the proxy; empty: build it
}

func settingsOf(c *cli.Context) (settings, error) {
	set := settings{
		commandLine: suite.CommandLine(c),
		clients:     c.Int("clients"), proxies: c.Int("proxies"), masters: c.Int("masters"),
		hold: c.Duration("hold"), pause: c.Duration("pause"), uneven: c.Bool("uneven"),
		rounds: suite.Rounds(c), window: suite.Window(c), binary: suite.Binary(c),
	}
	if min(set.proxies, set.masters, set.rounds) < 1 || set.clients < 2 ||
		set.window <= 0 || min(set.hold, set.pause) < 0 {
		return settings{}, errors.New("all numbers must be positive, clients at least 2, and hold and pause not negative")
	}
	// While the idle waiters are measured, one client holds the lock without extending it.
	if set.window+settlePause >= leaseTime {
		return settings{}, fmt.Errorf("-seconds must be less than %v: one client holds the lock for %v and the window, "+
			"and its lease of %v must not expire", (leaseTime - settlePause).Seconds(), settlePause, leaseTime)
	}
	return set, nil
}

// proxyIndex returns the index of the proxy of client number i.
func (set settings) proxyIndex(i int) int {
	switch {
	case !set.uneven || set.proxies == 1:
		return i % set.proxies
	case i%8 == 0:
		return 0
	default:
		return 1 + i%(set.proxies-1)
	}
}

// fleet holds the processes that the contenders use.
type fleet struct {
	*suite.Fleet
	proxies []*harness.Proxy
}

func startFleet(set settings) (*fleet, error) {
	servers, err := suite.StartFleet(set.masters)
	if err != nil {
		return nil, err
	}
	f := &fleet{Fleet: servers}
	for range set.proxies {
		proxy, err := f.StartProxy(harness.ProxyOptions{Binary: set.binary})
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.proxies = append(f.proxies, proxy)
	}
	return f, nil
}

// run measures everything. It prints tables to out and progress to log.
func run(ctx context.Context, set settings, out, log io.Writer) (err error) {
	f, err := startFleet(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	writeHeader(out, figures.ReadMachine(), set)
	unused, err := commandRate(ctx, f, set.window)
	if err != nil {
		return err
	}
	results := map[string][]outcome{}
	for round := range set.rounds {
		for i := range contenders() {
			one := contenders()[(i+round)%len(contenders())]
			got, err := runOnce(ctx, f, set, one, round)
			if err != nil {
				return fmt.Errorf("%s: %w", one.name, err)
			}
			got.idleCommands -= unused
			fmt.Fprintf(log, "round %d, %s: %s\n", round+1, one.name, got)
			results[one.name] = append(results[one.name], got)
		}
	}
	writeTables(out, results)
	return nil
}

// runOnce runs one contender in one round: first the contest, then a window with idle waiters.
func runOnce(ctx context.Context, f *fleet, set settings, subject contender, round int) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*set.window+drainLimit)
	defer cancel()
	got, c, err := runWindow(ctx, f, set, subject, round)
	if err != nil {
		return outcome{}, err
	}
	defer c.close()
	got.idleCommands, err = idleCommandRate(ctx, f, set, c.sessions)
	return got, err
}

// runWindow runs one contender's contest in one round. The caller closes the returned group.
func runWindow(ctx context.Context, f *fleet, set settings, subject contender, round int) (outcome, *sessionGroup, error) {
	c := &sessionGroup{}
	grants, err := func() ([]grant, error) {
		if err := subject.openSessions(c, ctx, f, set, fmt.Sprintf("handover:%s:%d", subject.name, round)); err != nil {
			return nil, err
		}
		return runContest(ctx, set, c.sessions)
	}()
	if err != nil {
		c.close()
		return outcome{}, nil, err
	}
	return outcomeOf(grants, set), c, nil
}

// drainLimit is the time that a run may take in addition to three windows, above all for granting
// its last locks.
const drainLimit = time.Minute
