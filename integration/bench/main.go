package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"redlock-proxy/integration/harness/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	rounds     int
	window     time.Duration
	think      time.Duration
	masters    int
	binary     string // of the proxy; empty: build it
	clients    []clientKind
	contenders []string
	scenarios  []scenario
}

// run does everything: tables to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	set, err := parseSettings(args, log)
	if err != nil {
		return err
	}
	fleet, err := startFleet(ctx, set)
	if err != nil {
		return err
	}
	defer fleet.close()
	writeMachine(out, figures.ReadMachine(), set, args)
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

func parseSettings(args []string, log io.Writer) (settings, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	rounds := flags.Int("rounds", 3, "rounds; the figures are their medians")
	seconds := flags.Float64("seconds", 3, "measured seconds per contender and round")
	think := flags.Duration("think", 0, "mean pause of a client between its unlock and its next lock")
	masters := flags.Int("masters", 5, "number of Redis masters")
	binary := flags.String("proxy", "", "program of the proxy; built when not given")
	client := flags.String("client", "goredis", "client of proxy and direct: goredis, raw or both")
	contenders := flags.String("contenders", strings.Join(usualContenders(), ","), "which contenders to run, of "+strings.Join(contenderNames(), ","))
	scenarios := flags.String("scenarios", "all", "which scenarios to run, by name")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	set := settings{rounds: *rounds, masters: *masters, think: *think, binary: *binary}
	set.window = time.Duration(*seconds * float64(time.Second))
	if set.rounds < 1 || set.window <= 0 || set.masters < 1 || set.think < 0 || flags.NArg() > 0 {
		return settings{}, fmt.Errorf("rounds, seconds and masters must be positive, think not negative, and there are no other arguments: %q", flags.Args())
	}
	return set, set.choose(*client, *contenders, *scenarios)
}

// choose resolves the names.
func (set *settings) choose(client, contenders, scenarios string) (err error) {
	if client == "both" {
		client = "goredis,raw"
	}
	if scenarios == "all" {
		scenarios = strings.Join(scenarioNames(), ",")
	}
	if set.clients, err = pick(client, clientKinds(), func(k clientKind) string { return string(k) }); err != nil {
		return err
	}
	if set.contenders, err = pick(contenders, contenderNames(), func(name string) string { return name }); err != nil {
		return err
	}
	set.scenarios, err = pick(scenarios, allScenarios(), func(s scenario) string { return s.name })
	return err
}

// pick returns the items that a comma-separated list names, in the order of the items.
func pick[T any](list string, items []T, name func(T) string) ([]T, error) {
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
