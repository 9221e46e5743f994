package relay

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

// Command returns the benchmark of relaying to an upstream.
func Command() *cli.Command {
	return suite.Command("relay", "the way through the proxy to an upstream, beside other proxies", []cli.Flag{
		suite.RoundsFlag(5), suite.ProxyFlag(),
		&cli.IntFlag{Name: "requests", Value: 200_000,
			Usage: fmt.Sprintf("requests of a run at -P 1; %d times as many at -P 16", pipelinedFactor)},
		&cli.IntFlag{Name: "clients", Value: defaultClients, Usage: "clients of redis-benchmark"},
		&cli.IntFlag{Name: "threads", Value: defaultThreads, Usage: "threads of HAProxy, and GOMAXPROCS of this proxy"},
		&cli.StringFlag{Name: "contenders", Value: strings.Join(contenderNames(), ","),
			Usage: "which contenders to run, by name"},
		&cli.BoolFlag{Name: "reconnect", Usage: "use a new connection for each request"},
		&cli.BoolFlag{Name: "idle", Usage: "measure memory per idle client instead of speed"},
		&cli.IntFlag{Name: "idlers", Value: 10_000, Usage: "number of idle clients"},
		&cli.DurationFlag{Name: "settle", Value: 10 * time.Second, Usage: "pause before their memory is measured"},
		&cli.IntFlag{Name: "connects",
			Usage: "number of clients that connect and disconnect, instead of measuring speed"},
		&cli.IntFlag{Name: "at-once", Value: 64, Usage: "number of these clients at a time"},
	}, func(c *cli.Context) error {
		set, err := settingsOf(c)
		if err != nil {
			return err
		}
		return run(c.Context, set, c.App.Writer, c.App.ErrWriter)
	})
}

// The defaults of flags.
const (
	defaultClients = 50
	defaultThreads = 2
)

type settings struct {
	commandLine        string // the command line of this run
	rounds             int
	requests           int // per run at -P 1
	clients            int // clients of redis-benchmark
	threads            int // threads of HAProxy and of the proxy
	binary             string
	contenders         []string
	reconnects         bool
	idle               bool
	idleClients        int
	settleTime         time.Duration // pause after the idle clients have connected
	connects           int
	concurrentConnects int
}

func settingsOf(c *cli.Context) (settings, error) {
	set := settings{
		commandLine: suite.CommandLine(c), rounds: suite.Rounds(c), binary: suite.Binary(c),
		contenders: strings.Split(c.String("contenders"), ","),
		requests:   c.Int("requests"), clients: c.Int("clients"), threads: c.Int("threads"),
		idle: c.Bool("idle"), idleClients: c.Int("idlers"), settleTime: c.Duration("settle"),
		connects: c.Int("connects"), concurrentConnects: c.Int("at-once"), reconnects: c.Bool("reconnect"),
	}
	if min(set.rounds, set.requests, set.clients, set.threads, set.idleClients, set.concurrentConnects) < 1 ||
		set.connects < 0 || set.settleTime < 0 {
		return settings{}, errors.New("all numbers must be positive")
	}
	for _, name := range set.contenders {
		if !slices.Contains(contenderNames(), name) {
			return settings{}, fmt.Errorf("%q is none of %s", name, strings.Join(contenderNames(), ", "))
		}
	}
	return set, nil
}

// run runs the requested measurements. It prints tables to out and progress to log.
func run(ctx context.Context, set settings, out, log io.Writer) error {
	writeHeader(out, figures.ReadMachine(), set)
	tally := &figures.Tally{}
	for _, part := range set.measurements() {
		if err := withFleet(ctx, set, func(f *fleet) error { return part(ctx, f, set, out, log, tally) }); err != nil {
			return err
		}
	}
	tally.Write(out)
	return nil
}

// measurement runs one kind of measurement. It prints tables to out and progress to log.
type measurement func(ctx context.Context, f *fleet, set settings, out, log io.Writer, tally *figures.Tally) error

// measurements returns the requested measurements. If none is requested, it returns measureSpeed.
func (set settings) measurements() []measurement {
	var parts []measurement
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

// withFleet starts a fleet, calls do with it, and closes it.
func withFleet(ctx context.Context, set settings, do func(*fleet) error) error {
	f, err := startFleet(ctx, set)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.close())
}
