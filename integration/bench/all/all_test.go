package all

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"redlock-proxy/integration/bench/figures"
	"redlock-proxy/integration/bench/suite"
)

// TestWrongNumbers checks that the benchmark refuses wrong arguments before it measures anything.
func TestWrongNumbers(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-seconds", "0"}, {"extra"}} {
		var out bytes.Buffer
		if err := suite.Run(t.Context(), Command(), &out, &out, args...); err == nil || out.Len() > 0 {
			t.Errorf("%v: %v, %q", args, err, &out)
		}
	}
}

func TestWritePlot(t *testing.T) {
	if err := writePlot("", nil); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "plot.svg")
	if err := writePlot(path, []figures.Curves{{Title: "nothing"}}); err != nil {
		t.Error(err)
	}
	if drawn, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(drawn, []byte("<svg")) {
		t.Errorf("the plot: %v, %.100s", err, drawn)
	}
	if err := writePlot(filepath.Join(path, "none"), nil); err == nil {
		t.Error("a plot was drawn nowhere")
	}
}
