package faults

import (
	"fmt"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// maxP99Ratio limits the p99 of LOCK while masters fail, as a multiple of the p99 without faults.
const maxP99Ratio = 2

func writeHeader(w io.Writer, m figures.Machine, set settings) {
	fmt.Fprintf(w, "## LOCK while 2 of 5 masters fail\n\n%s.\nMedians of %d rounds of %v.\n",
		m.Header("clients, proxies and masters"), set.rounds, set.window)
}

// writeTable prints the results of each state with the given number of clients.
func writeTable(w io.Writer, clients int, results map[string][]outcome) {
	fmt.Fprintf(w, "\n%d clients, each on a key of its own:\n\n", clients)
	fmt.Fprintln(w, "| masters | LOCK p50 ms | p99 ms | locks/s | errors | p99 ÷ healthy p99 | single rounds | goal |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|---|")
	for _, s := range states() {
		rounds := results[s.name]
		fmt.Fprintf(w, "| %s | %.3f | %.3f | %.0f | %d | %s |\n", s.name,
			median(rounds, func(o outcome) float64 { return figures.Millis(o.p50) }),
			median(rounds, p99Millis),
			median(rounds, func(o outcome) float64 { return o.rate }),
			totalErrors(rounds), ratioCells(rounds, results[s.baseline]))
	}
}

// ratioCells returns the last three cells: the ratio of the medians, the range of the ratios of the
// single rounds, and whether the goal is met.
func ratioCells(rounds, baseline []outcome) string {
	if len(baseline) == 0 {
		return " | | "
	}
	ratio := figures.RatioOf(valuesOf(rounds, p99Millis), valuesOf(baseline, p99Millis))
	verdict := fmt.Sprintf("< %d met", maxP99Ratio)
	if !ratio.Known || ratio.Median >= maxP99Ratio || totalErrors(rounds) > 0 {
		verdict = fmt.Sprintf("< %d MISSED", maxP99Ratio)
	}
	return fmt.Sprintf("%s | %s", ratio, verdict)
}

// p99Millis returns the p99 of LOCK in ms.
func p99Millis(o outcome) float64 { return figures.Millis(o.p99) }

// median returns the median of one figure of the rounds.
func median(rounds []outcome, figure func(outcome) float64) float64 {
	return figures.Median(valuesOf(rounds, figure))
}

func valuesOf(rounds []outcome, figure func(outcome) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	return all
}

func totalErrors(rounds []outcome) int {
	n := 0
	for _, r := range rounds {
		n += r.errorCount
	}
	return n
}
