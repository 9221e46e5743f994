package guard

import (
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond:                    "1s",
		26*time.Second + 1:                  "27s",
		60 * time.Second:                    "1m0s",
		5*time.Minute + 7*time.Second:       "5m7s",
		59*time.Minute + 59*time.Second + 1: "1h0m",
		87263 * time.Second:                 "24h15m",
		24*time.Hour + 14*time.Minute:       "24h14m",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
