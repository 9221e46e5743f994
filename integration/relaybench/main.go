package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"redlock-proxy/integration/harness"
	"redlock-proxy/integration/harness/figures"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "relaybench:", err)
		stop()
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	rounds     int
	requests   int // per run at -P 1
	clients    int // of redis-benchmark
	threads    int // of HAProxy and of the proxy
	binary     string
	contenders []string
	idle       bool
	idlers     int
	settle     time.Duration // after the idle clients have connected
	connects   int
	atOnce     int
}

// run does everything: tables to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	set, err := parseSettings(args, log)
	if err != nil {
		return err
	}
	defer harness.RemoveBuild()
	writeHeader(out, figures.ReadMachine(), set, args)
	tally := &figures.Tally{}
	for _, part := range set.parts() {
		if err := withFleet(ctx, set, func(f *fleet) error { return part(ctx, f, set, out, log, tally) }); err != nil {
			return err
		}
	}
	tally.Write(out)
	return nil
}

// part is one kind of measurement: tables to out, progress to log.
type part func(ctx context.Context, f *fleet, set settings, out, log io.Writer, tally *figures.Tally) error

// parts are those that were asked for, or else the speed.
func (set settings) parts() []part {
	var parts []part
	if set.idle {
		parts = append(parts, measureIdle)
	}
	if set.connects > 0 {
		parts = append(parts, measureConnects)
	}
	if len(parts) == 0 {
		parts = append(parts, measureSpeed)
	}
	return parts
}

// withFleet runs one part on processes that nothing else has used.
func withFleet(ctx context.Context, set settings, do func(*fleet) error) error {
	f, err := startFleet(ctx, set)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.close())
}

func parseSettings(args []string, log io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("relaybench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.IntVar(&set.rounds, "rounds", 5, "rounds; the figures are their medians")
	flags.IntVar(&set.requests, "requests", 200_000, fmt.Sprintf("requests of a run at -P 1; %d times as many at -P 16", pipelinedFactor))
	flags.IntVar(&set.clients, "clients", 50, "clients of redis-benchmark")
	flags.IntVar(&set.threads, "threads", 2, "threads of HAProxy, and GOMAXPROCS of this proxy")
	flags.StringVar(&set.binary, "proxy", "", "program of the proxy; built when not given")
	contenders := flags.String("contenders", strings.Join(contenderNames(), ","), "which contenders to run, by name")
	flags.BoolVar(&set.idle, "idle", false, "measure memory per idle client instead of speed")
	flags.IntVar(&set.idlers, "idlers", 10_000, "number of idle clients")
	flags.DurationVar(&set.settle, "settle", 10*time.Second, "pause before their memory is measured")
	flags.IntVar(&set.connects, "connects", 0, "let so many clients connect and leave instead of measuring speed")
	flags.IntVar(&set.atOnce, "at-once", 64, "how many of these are connected at a time")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if min(set.rounds, set.requests, set.clients, set.threads, set.idlers, set.atOnce) < 1 || set.connects < 0 || set.settle < 0 || flags.NArg() > 0 {
		return settings{}, fmt.Errorf("all numbers must be positive, and there are no other arguments: %q", flags.Args())
	}
	set.contenders = strings.Split(*contenders, ",")
	for _, name := range set.contenders {
		if !slices.Contains(contenderNames(), name) {
			return settings{}, fmt.Errorf("%q is none of %s", name, strings.Join(contenderNames(), ", "))
		}
	}
	return set, nil
}
