package locks

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"redlock-proxy/integration/bench/figures"
)

// writeScenario prints the tables of one scenario and counts its verdicts.
func writeScenario(w io.Writer, client clientKind, s scenario, r results, t *figures.Tally) {
	fmt.Fprintf(w, "\n### %s, %s client\n\n", s.title, client)
	writeFigures(w, r)
	writeErrors(w, r)
	writeNoise(w, r)
	if s.shared {
		writeOrder(w, s, r, t)
	}
	writeRatios(w, s, r, t)
}

// eachContender calls do with the medians of every contender that was run.
func eachContender(r results, do func(name string, o outcome)) {
	for _, name := range contenderNames() {
		if rounds := r[name]; len(rounds) > 0 {
			do(name, medians(rounds))
		}
	}
}

// contenderLabel returns a contender's name, with the number of its errors if it has any.
func contenderLabel(name string, o outcome) string {
	if n := o.errorCount(); n > 0 {
		return fmt.Sprintf("%s (%d ERRORS)", name, n)
	}
	return name
}

func writeFigures(w io.Writer, r results) {
	fmt.Fprintln(w, "| contender | pairs/s | LOCK p50 ms | p99 | pair p50 ms | p99 "+
		"| CPU µs per pair | = load | + proxy | + masters |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	eachContender(r, func(name string, o outcome) {
		fmt.Fprintf(w, "| %s | %.0f | %.3f | %.3f | %.3f | %.3f | %.1f | %.1f | %.1f | %.1f |\n",
			contenderLabel(name, o), o.rate,
			figures.Millis(o.lockP50), figures.Millis(o.lockP99), figures.Millis(o.pairP50), figures.Millis(o.pairP99),
			o.cpu.total, o.cpu.load, o.cpu.proxy, o.cpu.masters)
	})
}

// writeErrors prints the error texts with their counts, the most frequent first.
func writeErrors(w io.Writer, r results) {
	eachContender(r, func(name string, o outcome) {
		texts := slices.SortedFunc(maps.Keys(o.errors), func(a, b string) int {
			return cmp.Or(o.errors[b]-o.errors[a], strings.Compare(a, b))
		})
		for i, text := range texts {
			if i == maxErrorTexts {
				fmt.Fprintf(w, "\nERRORS of %s: and %d further texts\n", name, len(texts)-i)
				break
			}
			fmt.Fprintf(w, "\nERRORS of %s: %d × %q\n", name, o.errors[text], text)
		}
	})
}

// writeNoise prints a warning for each contender whose runs other processes disturbed.
func writeNoise(w io.Writer, r results) {
	eachContender(r, func(name string, o outcome) {
		figures.WriteNoiseWarning(w, name, o.otherCores)
	})
}

// maxErrorTexts is the maximum number of error texts that are printed for a contender.
const maxErrorTexts = 5

func writeOrder(w io.Writer, s scenario, r results, t *figures.Tally) {
	fmt.Fprintf(w, "\nOrder of service, all rounds, %d clients:\n\n", s.clients)
	fmt.Fprintln(w, "| contender | grants | overtaken | most turns waited "+
		"| fewest grants to a client | most | every waiter in turn |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|---|")
	eachContender(r, func(name string, o outcome) {
		verdict := "no goal"
		if name == nameProxy {
			verdict = t.Add(judgeOrder(o))
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %s |\n", contenderLabel(name, o),
			o.order.grants, o.order.overtakenRequests, o.order.maxTurnsWaited, o.order.fewestGrants, o.order.mostGrants, verdict)
	})
}

func writeRatios(w io.Writer, s scenario, r results, t *figures.Tally) {
	fmt.Fprintln(w, "\n| ratio | measured | single rounds | goal | |")
	fmt.Fprintln(w, "|---|--:|--:|--:|---|")
	for _, kind := range ratioKinds() {
		if !kind.isMeasured(r) {
			continue
		}
		value := ratioOf(r, kind)
		bound, verdict := "", ""
		if g, ok := s.goal(kind.title); ok {
			bound, verdict = g.String(), t.Add(g.Judge(value))
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", kind.title, value, bound, verdict)
	}
}

// goal returns the scenario's goal for a ratio.
func (s scenario) goal(title string) (goal, bool) {
	i := slices.IndexFunc(s.goals, func(g goal) bool { return g.ratio == title })
	if i < 0 {
		return goal{}, false
	}
	return s.goals[i], true
}
