package faults

import (
	"fmt"
	"io"

	"redlock-proxy/integration/bench/figures"
)

// goal limits the p99 of LOCK while masters fail, as a multiple of the p99 without faults.
const goal = 2

func writeHead(w io.Writer, m figures.Machine, set settings) {
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
			median(rounds, p99),
			median(rounds, func(o outcome) float64 { return o.rate }),
			errorCount(rounds), compare(rounds, results[s.baseline]))
	}
}

// compare returns the last three cells: the ratio of the medians, the ratios of the single rounds,
// and whether the goal is met.
func compare(rounds, healthy []outcome) string {
	if len(healthy) == 0 {
		return " | | "
	}
	ratio := figures.RatioOf(values(rounds, p99), values(healthy, p99))
	verdict := fmt.Sprintf("< %d met", goal)
	if !ratio.Known || ratio.Middle >= goal || errorCount(rounds) > 0 {
		verdict = fmt.Sprintf("< %d MISSED", goal)
	}
	return fmt.Sprintf("%s | %s", ratio, verdict)
}

// p99 returns the p99 of LOCK in ms.
func p99(o outcome) float64 { return figures.Millis(o.p99) }

// median returns the median of one figure of the rounds.
func median(rounds []outcome, figure func(outcome) float64) float64 {
	return figures.Median(values(rounds, figure))
}

func values(rounds []outcome, figure func(outcome) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	return all
}

func errorCount(rounds []outcome) int {
	n := 0
	for _, r := range rounds {
		n += r.errors
	}
	return n
}
