package handover

import (
	"fmt"
	"io"
	"slices"
	"time"

	"redlock-proxy/integration/bench/figures"
)

// outcome holds the figures of one run.
type outcome struct {
	handovers, grants    float64       // per second
	luckiest, unluckiest time.Duration // mean waits of clients
	p1, p50, p99         time.Duration // waits
	pass50, pass99       time.Duration // from the release or the later request to the grant
	free                 float64       // part of the time in which the lock was free though requested
	fewest, most         int           // grants to one client
	idle                 float64       // commands per second at the masters
}

// apart returns the ratio of the mean waits of the unluckiest and the luckiest client.
func (o outcome) apart() float64 {
	if o.luckiest <= 0 {
		return 0
	}
	return float64(o.unluckiest) / float64(o.luckiest)
}

// String returns the figures in one line, for progress.
func (o outcome) String() string {
	return fmt.Sprintf("%.0f hand-overs/s of %.0f grants/s, p50 %.2f p99 %.2f ms, free %.0f %%, "+
		"mean waits %.1f to %.1f ms, waits p1 %.1f p50 %.1f p99 %.1f ms, idle %.1f commands/s",
		o.handovers, o.grants, figures.Millis(o.pass50), figures.Millis(o.pass99), 100*o.free,
		figures.Millis(o.luckiest), figures.Millis(o.unluckiest),
		figures.Millis(o.p1), figures.Millis(o.p50), figures.Millis(o.p99), o.idle)
}

// outcomeOf computes the figures from the grants within the window. A client without a grant counts
// as waiting for the whole window.
func outcomeOf(all []grant, set settings) outcome {
	var o outcome
	var waits, passes []time.Duration
	sum, n := make([]time.Duration, set.clients), make([]int, set.clients)
	last := grant{client: -1}
	for _, g := range all {
		if inside := g.gotten >= 0 && g.gotten < set.window; inside {
			o.grants++
			pass := g.gotten - max(last.released, g.asked)
			o.free += pass.Seconds() / set.window.Seconds()
			if g.client != last.client {
				o.handovers++
				passes = append(passes, pass)
			}
			n[g.client]++
			sum[g.client] += g.gotten - g.asked
			waits = append(waits, g.gotten-g.asked)
		}
		last = g
	}
	o.handovers /= set.window.Seconds()
	o.grants /= set.window.Seconds()
	means := make([]time.Duration, set.clients)
	for i := range means {
		means[i] = set.window
		if n[i] > 0 {
			means[i] = sum[i] / time.Duration(n[i])
		}
	}
	o.luckiest, o.unluckiest, o.fewest, o.most = slices.Min(means), slices.Max(means), slices.Min(n), slices.Max(n)
	o.pass50, o.pass99 = figures.Percentile(passes, 50), figures.Percentile(passes, 99)
	o.p1, o.p50, o.p99 = figures.Percentile(waits, 1), figures.Percentile(waits, 50), figures.Percentile(waits, 99)
	return o
}

func median(rounds []outcome) outcome {
	number := func(get func(outcome) float64) float64 {
		var all []float64
		for _, o := range rounds {
			all = append(all, get(o))
		}
		return figures.Median(all)
	}
	times := func(get func(outcome) time.Duration) time.Duration {
		return time.Duration(number(func(o outcome) float64 { return float64(get(o)) }))
	}
	return outcome{
		handovers:  number(func(o outcome) float64 { return o.handovers }),
		grants:     number(func(o outcome) float64 { return o.grants }),
		idle:       number(func(o outcome) float64 { return o.idle }),
		free:       number(func(o outcome) float64 { return o.free }),
		pass50:     times(func(o outcome) time.Duration { return o.pass50 }),
		pass99:     times(func(o outcome) time.Duration { return o.pass99 }),
		luckiest:   times(func(o outcome) time.Duration { return o.luckiest }),
		unluckiest: times(func(o outcome) time.Duration { return o.unluckiest }),
		p1:         times(func(o outcome) time.Duration { return o.p1 }),
		p50:        times(func(o outcome) time.Duration { return o.p50 }),
		p99:        times(func(o outcome) time.Duration { return o.p99 }),
		fewest:     int(number(func(o outcome) float64 { return float64(o.fewest) })),
		most:       int(number(func(o outcome) float64 { return float64(o.most) })),
	}
}

func writeHead(w io.Writer, m figures.Machine, set settings) {
	fmt.Fprintf(w, "## Benchmark: one lock, %d clients of %d proxies, beside redsync\n\n", set.clients, set.proxies)
	fmt.Fprint(w, m.Header(fmt.Sprintf("load generator, proxies and all %d masters", set.masters)))
	fmt.Fprintf(w, ", redsync %s.\nMedians of %d rounds, %v each. Made by `%s`.\n\n",
		m.Version("github.com/go-redsync/redsync/v4"), set.rounds, set.window, set.madeBy)
}

// writeTables prints the figures, and the ratios that have a goal.
func writeTables(w io.Writer, results map[string][]outcome) {
	fmt.Fprintln(w, "| contender | hand-overs/s | grants/s | hand-over ms p50 | p99 | free "+
		"| mean wait ms, luckiest client | unluckiest | apart "+
		"| wait p1 ms | p50 | p99 | fewest and most grants | idle: commands/s |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, one := range contenders() {
		o := median(results[one.name])
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.2f | %.2f | %.0f %% | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f | %d–%d | %.1f |\n",
			one.name, o.handovers, o.grants, figures.Millis(o.pass50), figures.Millis(o.pass99), 100*o.free,
			figures.Millis(o.luckiest), figures.Millis(o.unluckiest), o.apart(),
			figures.Millis(o.p1), figures.Millis(o.p50), figures.Millis(o.p99), o.fewest, o.most, o.idle)
	}
	ours, theirs := results[nameProxies], results[nameRedsync]
	var rates, spreads [2][]float64
	for i, rounds := range [][]outcome{ours, theirs} {
		for _, o := range rounds {
			rates[i] = append(rates[i], o.handovers)
			spreads[i] = append(spreads[i], o.apart())
		}
	}
	fmt.Fprintf(w, "\nHand-overs/s, proxies / redsync: %s (goal: at least 3). ", figures.RatioOf(rates[0], rates[1]))
	fmt.Fprintf(w, "Unluckiest / luckiest client of the proxies: %.2f (goal: less than 2).\n", figures.Median(spreads[0]))
}
