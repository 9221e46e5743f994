package pacing

import (
	"testing"
	"time"
)

// TestPauses: each is twice as long, up to the longest, and less a random part of up to a half.
func TestPauses(t *testing.T) {
	p := Pauses{Shortest: 2 * time.Millisecond, Longest: 8 * time.Millisecond, Rand: func() float64 { return 0.5 }}
	for i, want := range []time.Duration{1500, 3000, 6000, 6000} {
		if got := p.Next(); got != want*time.Microsecond {
			t.Errorf("pause %d: %v", i, got)
		}
	}
	p.Reset()
	if got := p.Next(); got != 1500*time.Microsecond {
		t.Errorf("after a reset: %v", got)
	}
}
