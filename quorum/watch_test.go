package quorum

import (
	"testing"
	"time"
)

// TestAttendance: each loss and each return is told once, and a vote that is away for a moment is
// not told at all.
func TestAttendance(t *testing.T) {
	now, seen := time.Now(), quorumWatch{}
	for i, c := range []struct {
		has     bool
		want    transition
		without time.Duration
	}{
		{true, noChange, 0}, {false, noChange, 0}, {true, noChange, 0},
		{false, noChange, 0}, {false, quorumLost, 0}, {false, noChange, 0}, {false, noChange, 0}, {true, quorumBack, 4 * time.Second},
		{true, noChange, 0}, {false, noChange, 0}, {false, quorumLost, 0}, {true, quorumBack, 2 * time.Second},
	} {
		what, without := seen.see(c.has, now.Add(time.Duration(i)*time.Second))
		if what != c.want || what == quorumBack && without != c.without {
			t.Errorf("look %d: got %v after %v, want %v after %v", i, what, without, c.want, c.without)
		}
	}
	seen = quorumWatch{lost: now, reported: true} // told at the start
	if what, without := seen.see(true, now.Add(time.Minute)); what != quorumBack || without != time.Minute {
		t.Errorf("got %v after %v", what, without)
	}
}
