package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "faultbench:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	clients []int
	rounds  int
	window  time.Duration
	binary  string // of the proxy; empty: build it
}

func parseSettings(args []string, log io.Writer) (settings, error) {
	flags := flag.NewFlagSet("faultbench", flag.ContinueOnError)
	flags.SetOutput(log)
	clients := flags.String("clients", "1,16", "numbers of clients, each of which makes a table")
	rounds := flags.Int("rounds", 3, "rounds; the figures are their medians")
	seconds := flags.Float64("seconds", 3, "measured seconds per state and round")
	binary := flags.String("proxy", "", "program of the proxy; built when not given")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	set := settings{rounds: *rounds, window: time.Duration(*seconds * float64(time.Second)), binary: *binary}
	if set.rounds < 1 || set.window <= 0 || flags.NArg() > 0 {
		return settings{}, fmt.Errorf("rounds and seconds must be positive, and there are no other arguments: %q", flags.Args())
	}
	for _, text := range strings.Split(*clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return settings{}, fmt.Errorf("clients: %q is not a positive number", text)
		}
		set.clients = append(set.clients, n)
	}
	return set, nil
}

// run does everything: tables to out, progress to log.
func run(args []string, out, log io.Writer) (err error) {
	set, err := parseSettings(args, log)
	if err != nil {
		return err
	}
	f, err := startFleet(set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	writeHead(out, set)
	for _, clients := range set.clients {
		results := map[string][]figures{}
		for round := range set.rounds {
			fmt.Fprintf(log, "%d clients, round %d of %d\n", clients, round+1, set.rounds)
			if err := runRound(f, set, clients, results); err != nil {
				return err
			}
		}
		writeTable(out, clients, results)
	}
	return nil
}

// runRound measures every state once.
func runRound(f *fleet, set settings, clients int, results map[string][]figures) error {
	for _, s := range states() {
		got, err := f.measure(s, clients, set.window)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		results[s.name] = append(results[s.name], got)
	}
	return nil
}
