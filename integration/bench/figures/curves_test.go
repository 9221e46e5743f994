package figures

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"redlock-proxy/integration/bench/golden"
)

// TestWriteSVG checks that the picture of invented figures is XML, and equals the golden file.
func TestWriteSVG(t *testing.T) {
	rates := Curves{
		Title: "pairs per second", XLabel: "clients", XValues: []float64{1, 16, 64}, Names: []string{"proxy", "direct"},
		YValues: [][]float64{{3000, 9000}, {12000, 40000}, {20000, 41000}},
	}
	waits := Curves{Title: "p50, ms", XLabel: "clients", XValues: []float64{1, 2}, Names: []string{"proxy"},
		YValues: [][]float64{{0.1}, {0}}}
	var out bytes.Buffer
	if err := WriteSVG(&out, rates, waits); err != nil {
		t.Fatal(err)
	}
	golden.Want(t, "testdata/curves.svg", out.Bytes())
	for decoder := xml.NewDecoder(&out); ; {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAxis(t *testing.T) {
	for _, c := range []struct {
		base      float64
		values    []float64
		low, high float64
	}{
		{10, []float64{3, 250}, 1, 1000},
		{10, []float64{0.1, 1}, 0.1, 1},
		{10, []float64{10}, 10, 100},
		{2, []float64{1, 1024}, 1, 1024},
		{2, []float64{3}, 2, 4},
		{10, []float64{0, 20}, 10, 100},
		{10, []float64{0}, 1, 10},
	} {
		a := axisOf(c.base, c.values)
		if math.Abs(a.low/c.low-1) > 1e-9 || math.Abs(a.high/c.high-1) > 1e-9 {
			t.Errorf("%v of %v: from %v to %v; want %v to %v", c.base, c.values, a.low, a.high, c.low, c.high)
		}
		if a.position(a.low) != 0 || a.position(a.high) != 1 {
			t.Errorf("%v: its ends are at %v and %v", c.values, a.position(a.low), a.position(a.high))
		}
	}
}

func TestWriteLines(t *testing.T) {
	var out strings.Builder
	tally := &Tally{}
	WriteLines(&out, []Line{
		{"rate", RatioOf([]float64{10, 30, 20}, []float64{10, 10, 10}), Goal{AtLeast, 2}},
		{"CPU", SingleFigure([]float64{27, 25, 29}), Goal{AtMost, 26}},
		{"none", SingleFigure(nil), Goal{AtMost, 26}},
	}, tally)
	want := `
| ratio | measured | single rounds | goal | |
|---|--:|--:|--:|---|
| rate | 2.00 | 1.00–3.00 | ≥ 2 | met |
| CPU | 27.00 | 25.00–29.00 | ≤ 26 | MISSED |
| none | not measured |  | ≤ 26 | not measured |
`
	if out.String() != want || *tally != (Tally{1, 1, 1}) {
		t.Errorf("%+v, and\n%s\nwant\n%s", *tally, out.String(), want)
	}
}
