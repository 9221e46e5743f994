package process

import (
	"testing"
	"time"
)

func TestParseBusy(t *testing.T) {
	got, err := parseBusy("cpu  1 2 4 1000 1000 8 16 32 64 64\ncpu0 9 9 9 9 9 9 9 9 9 9\n")
	if want := 630 * time.Millisecond; got != want || err != nil {
		t.Errorf("%v, %v; want %v: user, nice, system, irq, softirq and steal", got, err, want)
	}
	for _, text := range []string{"", "unknown", "cpu0 1 2 3 4 5 6 7 8 9 10", "cpu 1 2 3", "cpu 1 2 3 4 5 6 7 x 9 10"} {
		if got, err := parseBusy(text); err == nil {
			t.Errorf("%q: %v; want an error", text, got)
		}
	}
}
