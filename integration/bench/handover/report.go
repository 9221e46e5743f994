package handover

import (
	"fmt"
	"io"
	"slices"
	"time"

	"redlock-proxy/integration/bench/figures"
)

// outcome holds the figures of one run, or the medians of several runs.
type outcome struct {
	handoverRate, grantRate           float64       // per second
	shortestMeanWait, longestMeanWait time.Duration // mean waits of clients
	waitP1, waitP50, waitP99          time.Duration // waits
	handoverP50, handoverP99          time.Duration // from release or later request to grant
	freeShare                         float64       // share of time with a free but requested lock
	fewestGrants, mostGrants          int           // grants to one client
	idleCommands                      float64       // commands per second at the masters
}

// meanWaitRatio returns the ratio of the mean waits of the unluckiest and the luckiest client.
func (o outcome) meanWaitRatio() float64 {
	if o.shortestMeanWait <= 0 {
		return 0
	}
	return float64(o.longestMeanWait) / float64(o.shortestMeanWait)
}

// String returns the figures in one line, for progress.
func (o outcome) String() string {
	return fmt.Sprintf("%.0f hand-overs/s of %.0f grants/s, p50 %.2f p99 %.2f ms, free %.0f %%, "+
		"mean waits %.1f to %.1f ms, waits p1 %.1f p50 %.1f p99 %.1f ms, idle %.1f commands/s",
		o.handoverRate, o.grantRate, figures.Millis(o.handoverP50), figures.Millis(o.handoverP99), 100*o.freeShare,
		figures.Millis(o.shortestMeanWait), figures.Millis(o.longestMeanWait),
		figures.Millis(o.waitP1), figures.Millis(o.waitP50), figures.Millis(o.waitP99), o.idleCommands)
}

// outcomeOf computes the figures from the grants within the window. A client without a grant counts
// as waiting for the whole window.
func outcomeOf(all []grant, set settings) outcome {
	var o outcome
	var waits, handovers []time.Duration
	sum, n := make([]time.Duration, set.clients), make([]int, set.clients)
	last := grant{client: -1}
	for _, g := range all {
		if inside := g.grantTime >= 0 && g.grantTime < set.window; inside {
			o.grantRate++
			pass := g.grantTime - max(last.releaseTime, g.requestTime)
			o.freeShare += pass.Seconds() / set.window.Seconds()
			if g.client != last.client {
				o.handoverRate++
				handovers = append(handovers, pass)
			}
			n[g.client]++
			sum[g.client] += g.grantTime - g.requestTime
			waits = append(waits, g.grantTime-g.requestTime)
		}
		last = g
	}
	o.handoverRate /= set.window.Seconds()
	o.grantRate /= set.window.Seconds()
	means := make([]time.Duration, set.clients)
	for i := range means {
		means[i] = set.window
		if n[i] > 0 {
			means[i] = sum[i] / time.Duration(n[i])
		}
	}
	o.shortestMeanWait, o.longestMeanWait, o.fewestGrants, o.mostGrants = slices.Min(means), slices.Max(means), slices.Min(n), slices.Max(n)
	o.handoverP50, o.handoverP99 = figures.Percentile(handovers, 50), figures.Percentile(handovers, 99)
	o.waitP1, o.waitP50, o.waitP99 = figures.Percentile(waits, 1), figures.Percentile(waits, 50), figures.Percentile(waits, 99)
	return o
}

func medians(rounds []outcome) outcome {
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
		handoverRate:     number(func(o outcome) float64 { return o.handoverRate }),
		grantRate:        number(func(o outcome) float64 { return o.grantRate }),
		idleCommands:     number(func(o outcome) float64 { return o.idleCommands }),
		freeShare:        number(func(o outcome) float64 { return o.freeShare }),
		handoverP50:      times(func(o outcome) time.Duration { return o.handoverP50 }),
		handoverP99:      times(func(o outcome) time.Duration { return o.handoverP99 }),
		shortestMeanWait: times(func(o outcome) time.Duration { return o.shortestMeanWait }),
		longestMeanWait:  times(func(o outcome) time.Duration { return o.longestMeanWait }),
		waitP1:           times(func(o outcome) time.Duration { return o.waitP1 }),
		waitP50:          times(func(o outcome) time.Duration { return o.waitP50 }),
		waitP99:          times(func(o outcome) time.Duration { return o.waitP99 }),
		fewestGrants:     int(number(func(o outcome) float64 { return float64(o.fewestGrants) })),
		mostGrants:       int(number(func(o outcome) float64 { return float64(o.mostGrants) })),
	}
}

func writeHeader(w io.Writer, m figures.Machine, set settings) {
	fmt.Fprintf(w, "## Benchmark: one lock, %d clients of %d proxies, beside redsync\n\n", set.clients, set.proxies)
	fmt.Fprint(w, m.Header(fmt.Sprintf("load generator, proxies and all %d masters", set.masters)))
	fmt.Fprintf(w, ", redsync %s.\nMedians of %d rounds, %v each. Made by `%s`.\n\n",
		m.Version("github.com/go-redsync/redsync/v4"), set.rounds, set.window, set.commandLine)
}

// writeTables prints the figures, and the ratios that have a goal.
func writeTables(w io.Writer, results map[string][]outcome) {
	fmt.Fprintln(w, "| contender | hand-overs/s | grants/s | hand-over ms p50 | p99 | free "+
		"| mean wait ms, luckiest client | unluckiest | apart "+
		"| wait p1 ms | p50 | p99 | fewest and most grants | idle: commands/s |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, one := range contenders() {
		o := medians(results[one.name])
		fmt.Fprintf(w, "| %s | %.0f | %.0f | %.2f | %.2f | %.0f %% | %.1f | %.1f | %.2f | %.1f | %.1f | %.1f | %d–%d | %.1f |\n",
			one.name, o.handoverRate, o.grantRate, figures.Millis(o.handoverP50), figures.Millis(o.handoverP99), 100*o.freeShare,
			figures.Millis(o.shortestMeanWait), figures.Millis(o.longestMeanWait), o.meanWaitRatio(),
			figures.Millis(o.waitP1), figures.Millis(o.waitP50), figures.Millis(o.waitP99), o.fewestGrants, o.mostGrants, o.idleCommands)
	}
	ours, theirs := results[nameProxies], results[nameRedsync]
	var rates, spreads [2][]float64
	for i, rounds := range [][]outcome{ours, theirs} {
		for _, o := range rounds {
			rates[i] = append(rates[i], o.handoverRate)
			spreads[i] = append(spreads[i], o.meanWaitRatio())
		}
	}
	fmt.Fprintf(w, "\nHand-overs/s, proxies / redsync: %s (goal: at least 3). ", figures.RatioOf(rates[0], rates[1]))
	fmt.Fprintf(w, "Unluckiest / luckiest client of the proxies: %.2f (goal: less than 2).\n", figures.Median(spreads[0]))
}
