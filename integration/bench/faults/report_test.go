package faults

import (
	"strings"
	"testing"
	"time"
)

func TestWriteTable(t *testing.T) {
	round := func(p99 time.Duration, errors int) outcome {
		return outcome{p50: time.Millisecond, p99: p99 * time.Millisecond, rate: 100, errorCount: errors}
	}
	results := map[string][]outcome{}
	for _, s := range states() {
		results[s.name] = []outcome{round(10, 0), round(30, 0), round(20, 0)}
	}
	results["2 of 5 killed"] = []outcome{round(30, 0), round(33, 0), round(20, 0)}
	results["2 of 5 stopped"] = []outcome{round(10, 0), round(50, 0), round(40, 0)}
	results["2 of 5 unreachable"] = []outcome{round(10, 0), round(30, 1), round(20, 0)}
	var out strings.Builder
	writeTable(&out, 7, results)
	for _, row := range []string{
		"| healthy | 1.000 | 20.000 | 100 | 0 |  | |  |\n",
		"| 2 of 5 killed | 1.000 | 30.000 | 100 | 0 | 1.50 | 1.00–3.00 | < 2 met |\n",
		"| 2 of 5 stopped | 1.000 | 40.000 | 100 | 0 | 2.00 | 1.00–2.00 | < 2 MISSED |\n",
		"| 2 of 5 unreachable | 1.000 | 20.000 | 100 | 1 | 1.00 | 1.00–1.00 | < 2 MISSED |\n",
	} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("got\n%swant a row %s", &out, row)
		}
	}
}
