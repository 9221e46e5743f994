package relay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"redlock-proxy/integration/bench/figures"
)

// writeHeader prints the title, and the machine and versions.
func writeHeader(w io.Writer, m figures.Machine, set settings) {
	fmt.Fprint(w, "## Benchmark: the way through the proxy to an upstream Redis\n\n")
	fmt.Fprint(w, m.Header("load generator, redis-server and the proxies"))
	for _, name := range []string{nameHAProxy, nameNutcracker} {
		if slices.Contains(set.contenders, name) {
			fmt.Fprintf(w, ", %s %s", name, otherProxyVersion(name))
		}
	}
	fmt.Fprintf(w, ".\nMade by `%s`.\n", set.commandLine)
}

// writeSpeed prints a table for each scenario, and then the goals.
func writeSpeed(w io.Writer, set settings, all results, tally *figures.Tally) {
	fmt.Fprintf(w, "Medians of %d rounds, redis-benchmark with %d clients, %d requests a run at -P 1 and %d at -P 16.\n",
		set.rounds, set.clients, set.requests, set.requests*pipelinedFactor)
	for _, c := range set.scenarios() {
		fmt.Fprintf(w, "\n### %s, %s\n\n", c.test, c.options())
		writeFigures(w, all[c])
		eachContender(all[c], func(name string, o outcome) { figures.WriteNoiseWarning(w, name, o.otherCores) })
	}
	if !set.reconnects { // reconnecting has no goal
		writeGoals(w, set, all, tally)
	}
}

// eachContender calls do with the medians of every contender that was run.
func eachContender(rounds map[string][]outcome, do func(name string, o outcome)) {
	for _, name := range contenderNames() {
		if len(rounds[name]) > 0 {
			do(name, medians(rounds[name]))
		}
	}
}

func writeFigures(w io.Writer, rounds map[string][]outcome) {
	fmt.Fprintln(w, "| | req/s | / direct | single rounds | CPU µs per request | + redis-server | p50 ms | p99 ms |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|")
	eachContender(rounds, func(name string, o outcome) {
		own := "–"
		if name != nameDirect {
			own = fmt.Sprintf("%.2f", o.contenderCPU)
		}
		toDirect := figures.RatioOf(valuesOf(rounds[name], rateOf), valuesOf(rounds[nameDirect], rateOf))
		fmt.Fprintf(w, "| %s | %.0f | %s | %s | %.2f | %.3f | %.3f |\n",
			name, o.rate, toDirect, own, o.serverCPU, o.p50, o.p99)
	})
}

// speedGoal is a goal relative to HAProxy.
type speedGoal struct {
	title string
	value func(outcome) float64
	figures.Goal
}

func speedGoals() []speedGoal {
	return []speedGoal{
		{"req/s, proxy / haproxy", rateOf, figures.Goal{Direction: figures.AtLeast, Bound: 1}},
		{"CPU per request, proxy / haproxy", cpuOf, figures.Goal{Direction: figures.AtMost, Bound: 1.1}},
	}
}

func writeGoals(w io.Writer, set settings, all results, tally *figures.Tally) {
	fmt.Fprintln(w, "\n### Goals")
	figures.WriteLines(w, speedLines(set, all), tally)
}

func speedLines(set settings, all results) (lines []figures.Line) {
	for _, g := range speedGoals() {
		for _, c := range set.scenarios() {
			ratio := figures.RatioOf(valuesOf(all[c][nameProxy], g.value), valuesOf(all[c][nameHAProxy], g.value))
			lines = append(lines, figures.Line{Title: g.title + ": " + c.title(), Ratio: ratio, Goal: g.Goal})
		}
	}
	return lines
}

// errorTexts returns the error texts with their counts, sorted.
func errorTexts(counts map[string]int) string {
	var lines []string
	for text, n := range counts {
		lines = append(lines, fmt.Sprintf("%d × %q", n, text))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20)) }

func kilobytes(bytes float64) string { return fmt.Sprintf("%.1f KB", bytes/(1<<10)) }
