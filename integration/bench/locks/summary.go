package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"redlock-proxy/integration/bench/figures"
)

// summaryMasters is the number of masters. summaryLatency is the round trip to the masters that the
// second part of Summary adds.
const (
	summaryMasters = 5
	summaryLatency = time.Millisecond
)

// Summary measures the ratios and figures with goals of localLines and latencyLines, and the curves
// of throughput and latency over the number of clients, with the raw client. It prints progress to
// log. If binary is empty, it builds the proxy.
func Summary(
	ctx context.Context, binary string, rounds int, window time.Duration, log io.Writer,
) (lines []figures.Line, curves []figures.Curves, err error) {
	near := settings{
		rounds: rounds, window: window, masters: summaryMasters, binary: binary, contenders: defaultContenders(),
	}
	far := near
	far.addedLatency, far.contenders = summaryLatency, []string{nameProxy, nameRedsync}
	nearby, err := measure(ctx, near, log, "c1", "c16", "c64", "c256", "c1024")
	if err != nil {
		return nil, nil, err
	}
	distant, err := measure(ctx, far, log, "c1", "c16", "c64")
	if err != nil {
		return nil, nil, err
	}
	return append(localLines(nearby), latencyLines(distant)...), curvesOf(nearby), nil
}

// scenarioResults holds the results of scenarios, by their names.
type scenarioResults map[string]results

// measure runs scenarios with the raw client.
func measure(ctx context.Context, set settings, log io.Writer, names ...string) (all scenarioResults, err error) {
	f, err := startFleet(set)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	all = scenarioResults{}
	for _, s := range allScenarios() {
		for _, name := range names {
			if s.name != name {
				continue
			}
			if all[name], err = runScenario(ctx, f, set, clientRaw, s, log); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// localLines returns the figures and goals for masters on the same machine.
func localLines(all scenarioResults) []figures.Line {
	busy, single := all["c64"], all["c1"]
	ratio := func(r results, title string) figures.Ratio {
		for _, kind := range ratioKinds() {
			if kind.title == title {
				return ratioOf(r, kind)
			}
		}
		return figures.Ratio{}
	}
	spent := func(part func(outcome) float64) figures.Ratio {
		alone := figures.SingleFigure(valuesOf(busy[nameProxy], part))
		alone.HasErrors = errorCount(busy[nameProxy]) > 0
		return alone
	}
	lines := []figures.Line{
		{Title: "64 clients: " + ratioRateRedsync, Ratio: ratio(busy, ratioRateRedsync),
			Goal: figures.Goal{Direction: figures.AtLeast, Bound: 5}},
		{Title: "64 clients: " + ratioRateDirect, Ratio: ratio(busy, ratioRateDirect),
			Goal: figures.Goal{Direction: figures.AtLeast, Bound: 0.6}},
		{Title: "64 clients: CPU µs of the proxy per pair",
			Ratio: spent(func(o outcome) float64 { return o.cpu.proxy }),
			Goal:  figures.Goal{Direction: figures.AtMost, Bound: 26}},
		{Title: "64 clients: CPU µs of the masters per pair",
			Ratio: spent(func(o outcome) float64 { return o.cpu.masters }),
			Goal:  figures.Goal{Direction: figures.AtMost, Bound: 28}},
		{Title: "1 client: " + ratioLock50Redsync, Ratio: ratio(single, ratioLock50Redsync),
			Goal: figures.Goal{Direction: figures.AtMost, Bound: 1}},
	}
	for _, many := range []string{"c256", "c1024"} {
		ours, less := all[many][nameProxy], busy[nameProxy]
		growth := figures.RatioOf(valuesOf(ours, rateOf), valuesOf(less, rateOf))
		growth.HasErrors = errorCount(ours)+errorCount(less) > 0
		lines = append(lines, figures.Line{
			Title: fmt.Sprintf("pairs/s, %s clients / 64", many[1:]), Ratio: growth,
			Goal: figures.Goal{Direction: figures.AtLeast, Bound: 0.9},
		})
	}
	return lines
}

// latencyLines returns the figures and goals for distant masters.
func latencyLines(all scenarioResults) (lines []figures.Line) {
	for _, kind := range ratioKinds() {
		if kind.title != ratioLock50Redsync {
			continue
		}
		for _, name := range []string{"c1", "c16", "c64"} {
			lines = append(lines, figures.Line{
				Title: fmt.Sprintf("%v away, %s clients: %s", summaryLatency, name[1:], kind.title),
				Ratio: ratioOf(all[name], kind), Goal: figures.Goal{Direction: figures.AtMost, Bound: 1.1},
			})
		}
	}
	return lines
}

// curvesOf returns throughput and latency over the number of clients.
func curvesOf(all scenarioResults) []figures.Curves {
	rates := figures.Curves{Title: "LOCK + UNLOCK pairs per second", XLabel: "clients", Names: defaultContenders()}
	waits := figures.Curves{Title: "LOCK p50, ms", XLabel: "clients", Names: defaultContenders()}
	for _, s := range allScenarios() {
		r, ok := all[s.name]
		if !ok {
			continue
		}
		rates.XValues, waits.XValues = append(rates.XValues, float64(s.clients)), append(waits.XValues, float64(s.clients))
		var rateValues, waitValues []float64
		for _, name := range defaultContenders() {
			o := medians(r[name])
			rateValues, waitValues = append(rateValues, o.rate), append(waitValues, figures.Millis(o.lockP50))
		}
		rates.YValues, waits.YValues = append(rates.YValues, rateValues), append(waits.YValues, waitValues)
	}
	return []figures.Curves{rates, waits}
}
