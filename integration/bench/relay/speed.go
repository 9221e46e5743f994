package relay

import (
	"context"
	"fmt"
	"io"
	"time"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/internal/process"
)

// scenario describes one test of redis-benchmark with one pipeline depth.
type scenario struct {
	test       string
	pipeline   int
	reconnects bool // each request uses a new connection
}

func (c scenario) options() string {
	if c.reconnects {
		return "-k 0"
	}
	return fmt.Sprintf("-P %d", c.pipeline)
}

func (c scenario) title() string { return c.test + " " + c.options() }

func (set settings) scenarios() []scenario {
	if set.reconnects {
		return []scenario{{"GET", 1, true}}
	}
	return []scenario{{"SET", 1, false}, {"GET", 1, false}, {"SET", 16, false}, {"GET", 16, false}}
}

const (
	// pipelinedFactor is the factor by which a run with pipelines has more requests, so that it
	// takes about as long as a run without pipelines.
	pipelinedFactor = 5
	// warmUpDivisor divides the number of requests for the discarded round.
	warmUpDivisor = 10
)

// requests returns the number of requests of a run. plain is the number for a run without
// pipelines.
func (c scenario) requests(plain int) int {
	if c.pipeline > 1 {
		return plain * pipelinedFactor
	}
	return plain
}

// outcome holds the figures of one run, or the medians of several runs.
type outcome struct {
	figure
	contenderCPU float64 // CPU of the contender's process, µs per request; 0 for direct
	serverCPU    float64 // CPU of the redis-server behind the contender, µs per request
	otherCores   float64 // cores that other processes used during the run
}

// results holds the outcome of each round, by scenario and contender.
type results map[scenario]map[string][]outcome

// measureSpeed runs all rounds and prints the tables.
func measureSpeed(ctx context.Context, f *fleet, set settings, out, log io.Writer, tally *figures.Tally) error {
	all, err := runSpeedRounds(ctx, f, set, log)
	if err == nil {
		writeSpeed(out, set, all, tally)
	}
	return err
}

func runSpeedRounds(ctx context.Context, f *fleet, set settings, log io.Writer) (results, error) {
	all := results{}
	for _, c := range set.scenarios() {
		all[c] = map[string][]outcome{}
	}
	if err := runSpeedRound(ctx, f, set, 0, set.requests/warmUpDivisor+1, func(scenario, string, outcome) {}); err != nil {
		return nil, err
	}
	for round := range set.rounds {
		err := runSpeedRound(ctx, f, set, round, set.requests, func(c scenario, name string, o outcome) {
			all[c][name] = append(all[c][name], o)
			fmt.Fprintf(log,
				"round %d, %s, %s: %.0f req/s, CPU %.1f µs + server %.1f µs, p50 %.3f ms, others took %.2f cores\n",
				round+1, c.title(), name, o.rate, o.contenderCPU, o.serverCPU, o.p50, o.otherCores)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// runSpeedRound runs every scenario with every contender once, and calls report with each outcome.
func runSpeedRound(
	ctx context.Context, f *fleet, set settings, round, requests int, report func(scenario, string, outcome),
) error {
	for _, c := range set.scenarios() {
		for i := range set.contenders {
			name := set.contenders[(i+round)%len(set.contenders)]
			o, err := runBenchmark(ctx, f, c, name, set.clients, c.requests(requests))
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.title(), name, err)
			}
			report(c, name, o)
		}
	}
	return nil
}

// cpuReading holds the CPU times used up to a moment.
type cpuReading struct {
	at                       time.Time
	contender, server, fleet time.Duration
	machine                  time.Duration // used by all processes and by the hypervisor
}

func (f *fleet) readCPU(contender server) (r cpuReading, err error) {
	if r.contender, err = contender.CPU(); err != nil {
		return r, err
	}
	if r.server, err = f.upstream.CPU(); err != nil {
		return r, err
	}
	if r.fleet, err = f.totalCPU(); err != nil {
		return r, err
	}
	r.machine, err = process.BusyCPU()
	r.at = time.Now()
	return r, err
}

func runBenchmark(ctx context.Context, f *fleet, c scenario, name string, clients, requests int) (outcome, error) {
	contender := f.contenders[name]
	before, err := f.readCPU(contender)
	if err != nil {
		return outcome{}, err
	}
	got, load, err := runRedisBenchmark(ctx, contender.Addr(), c, clients, requests)
	if err != nil {
		return outcome{}, err
	}
	after, err := f.readCPU(contender)
	if err != nil {
		return outcome{}, err
	}
	o := outcome{
		figure: got, otherCores: otherCores(before, after, load),
		serverCPU: perRequest(after.server-before.server, requests),
	}
	if name != nameDirect {
		o.contenderCPU = perRequest(after.contender-before.contender, requests)
	}
	return o, nil
}

// otherCores returns the number of cores that other processes used. load is the CPU time of the
// load generator if it is a process of its own.
func otherCores(before, after cpuReading, load time.Duration) float64 {
	others := (after.machine - before.machine) - (after.fleet - before.fleet) - load
	return max(0, others.Seconds()) / after.at.Sub(before.at).Seconds()
}

// perRequest returns the time per request in µs.
func perRequest(spent time.Duration, requests int) float64 {
	return float64(spent.Nanoseconds()) / 1e3 / float64(requests)
}

// medians returns the medians of all figures, except that the field otherCores is the maximum.
func medians(rounds []outcome) outcome {
	median := func(get func(outcome) float64) float64 { return figures.Median(valuesOf(rounds, get)) }
	all := outcome{
		figure: figure{
			rate: median(rateOf),
			p50:  median(func(o outcome) float64 { return o.p50 }),
			p99:  median(func(o outcome) float64 { return o.p99 }),
		},
		contenderCPU: median(cpuOf),
		serverCPU:    median(func(o outcome) float64 { return o.serverCPU }),
	}
	for _, o := range rounds {
		all.otherCores = max(all.otherCores, o.otherCores)
	}
	return all
}

func rateOf(o outcome) float64 { return o.rate }
func cpuOf(o outcome) float64  { return o.contenderCPU }

func valuesOf(rounds []outcome, get func(outcome) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, o := range rounds {
		all[i] = get(o)
	}
	return all
}
