package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// goal is what the p99 of LOCK while masters fail must stay under, as a multiple of the healthy one.
const goal = 2

func writeHead(w io.Writer, set settings) {
	fmt.Fprintf(w, "## LOCK while 2 of 5 masters fail\n\n")
	fmt.Fprintf(w, "%d cores shared by clients, proxies and masters, load average before the run %s. Medians of %d rounds of %v.\n",
		runtime.NumCPU(), loadAverage(), set.rounds, set.window)
}

// loadAverage is that of the last minute, where /proc tells it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

// writeTable prints what came of each state with so many clients.
func writeTable(w io.Writer, clients int, results map[string][]figures) {
	fmt.Fprintf(w, "\n%d clients, each on a key of its own:\n\n", clients)
	fmt.Fprintln(w, "| masters | LOCK p50 ms | p99 ms | locks/s | errors | p99 ÷ healthy p99 | single rounds | goal |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|---|")
	for _, s := range states() {
		rounds := results[s.name]
		fmt.Fprintf(w, "| %s | %s | %s | %.0f | %d | %s |\n", s.name,
			millis(median(rounds, func(f figures) time.Duration { return f.p50 })),
			millis(median(rounds, p99)),
			median(rounds, func(f figures) float64 { return f.rate }),
			errorCount(rounds), compare(rounds, results[s.baseline]))
	}
}

// compare makes the last three cells: the ratio of the medians, those of the single rounds, and whether the goal is met.
func compare(rounds, healthy []figures) string {
	if len(healthy) == 0 {
		return " | | "
	}
	ratio := float64(median(rounds, p99)) / float64(median(healthy, p99))
	singles := make([]float64, len(rounds))
	for i := range rounds {
		singles[i] = float64(rounds[i].p99) / float64(healthy[i].p99)
	}
	verdict := fmt.Sprintf("< %d met", goal)
	if !(ratio < goal) || errorCount(rounds) > 0 {
		verdict = fmt.Sprintf("< %d MISSED", goal)
	}
	return fmt.Sprintf("%.2f | %.2f–%.2f | %s", ratio, slices.Min(singles), slices.Max(singles), verdict)
}

func p99(f figures) time.Duration { return f.p99 }

// median of one figure of the rounds; of an even number the lower middle.
func median[T cmp.Ordered](rounds []figures, figure func(figures) T) T {
	values := make([]T, len(rounds))
	for i, r := range rounds {
		values[i] = figure(r)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

func errorCount(rounds []figures) int {
	n := 0
	for _, r := range rounds {
		n += r.errors
	}
	return n
}

// millis prints a duration in milliseconds.
func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }
