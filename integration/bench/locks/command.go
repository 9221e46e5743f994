package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
)

// Command returns the benchmark of locks.
func Command() *cli.Command {
	return suite.Command("locks", "lock and unlock, beside redsync and a single Redis", []cli.Flag{
		suite.RoundsFlag(3), suite.SecondsFlag(3), suite.ProxyFlag(),
		&cli.DurationFlag{Name: "think", Usage: "mean pause of a client between its unlock and its next lock"},
		&cli.IntFlag{Name: "masters", Value: 5, Usage: "number of Redis masters"},
		&cli.DurationFlag{Name: "distance", Usage: "round trip to the masters that is added to their answers"},
		&cli.StringFlag{Name: "client", Value: string(clientGoRedis),
			Usage: "client of proxy and direct: goredis, raw or both"},
		&cli.StringFlag{Name: "contenders", Value: strings.Join(defaultContenders(), ","),
			Usage: "which contenders to run, of " + strings.Join(contenderNames(), ",")},
		&cli.StringFlag{Name: "scenarios", Value: "all", Usage: "which scenarios to run, by name"},
	}, func(c *cli.Context) error {
		set, err := settingsOf(c)
		if err != nil {
			return err
		}
		return run(c.Context, set, c.App.Writer, c.App.ErrWriter)
	})
}

type settings struct {
	commandLine  string // the command line of this run
	rounds       int
	window       time.Duration
	thinkTime    time.Duration
	masters      int
	addedLatency time.Duration // round trip that is added between the contenders and the masters
	binary       string        // path of the proxy; empty: build it
	clients      []clientKind
	contenders   []string
	scenarios    []scenario
}

// run measures all requested scenarios. It prints tables to out and progress to log.
func run(ctx context.Context, set settings, out, log io.Writer) (err error) {
	fleet, err := startFleet(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	writeMachine(out, figures.ReadMachine(), set)
	tally := &figures.Tally{}
	for _, client := range set.clients {
		for _, s := range set.scenarios {
			results, err := runScenario(ctx, fleet, set, client, s, log)
			if err != nil {
				return err
			}
			writeScenario(out, client, s, results, tally)
		}
	}
	tally.Write(out)
	return nil
}

func settingsOf(c *cli.Context) (settings, error) {
	set := settings{
		commandLine: suite.CommandLine(c), rounds: suite.Rounds(c), window: suite.Window(c), binary: suite.Binary(c),
		masters: c.Int("masters"), addedLatency: c.Duration("distance"), thinkTime: c.Duration("think"),
	}
	if set.rounds < 1 || set.window <= 0 || set.masters < 1 || set.thinkTime < 0 || set.addedLatency < 0 {
		return settings{}, errors.New("rounds, seconds and masters must be positive, think and distance not negative")
	}
	return set, set.selectByName(c.String("client"), c.String("contenders"), c.String("scenarios"))
}

// selectByName sets the clients, the contenders and the scenarios that the comma-separated lists
// name. "both" means both clients, "all" means all scenarios.
func (set *settings) selectByName(client, contenders, scenarios string) (err error) {
	if client == "both" {
		client = "goredis,raw"
	}
	if scenarios == "all" {
		scenarios = strings.Join(scenarioNames(), ",")
	}
	if set.clients, err = selectNamed(client, clientKinds(), func(k clientKind) string { return string(k) }); err != nil {
		return err
	}
	if set.contenders, err = selectNamed(contenders, contenderNames(), func(name string) string { return name }); err != nil {
		return err
	}
	set.scenarios, err = selectNamed(scenarios, allScenarios(), func(s scenario) string { return s.name })
	return err
}

// selectNamed returns the items that a comma-separated list names, in the order of the items.
func selectNamed[T any](list string, items []T, name func(T) string) ([]T, error) {
	wanted := strings.Split(list, ",")
	var known []string
	var picked []T
	for _, item := range items {
		known = append(known, name(item))
		if slices.Contains(wanted, name(item)) {
			picked = append(picked, item)
		}
	}
	for _, want := range wanted {
		if !slices.Contains(known, want) {
			return nil, fmt.Errorf("%q is none of %s", want, strings.Join(known, ", "))
		}
	}
	return picked, nil
}
