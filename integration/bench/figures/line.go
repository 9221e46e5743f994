package figures

import (
	"fmt"
	"io"
	"slices"
)

// Line holds a ratio or a single figure, and its goal.
type Line struct {
	Title string
	Ratio Ratio
	Goal  Goal
}

// SingleFigure returns a single figure as a Ratio: its median, lowest and highest value over the
// rounds.
func SingleFigure(rounds []float64) Ratio {
	if len(rounds) == 0 {
		return Ratio{}
	}
	return Ratio{Median: Median(rounds), Low: slices.Min(rounds), High: slices.Max(rounds), Known: true}
}

// WriteLines prints a table of lines, and counts their verdicts.
func WriteLines(w io.Writer, lines []Line, tally *Tally) {
	fmt.Fprintln(w, "\n| ratio | measured | single rounds | goal | |")
	fmt.Fprintln(w, "|---|--:|--:|--:|---|")
	for _, l := range lines {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", l.Title, l.Ratio, l.Goal, tally.Add(l.Goal.Judge(l.Ratio)))
	}
}
