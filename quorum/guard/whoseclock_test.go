package guard

import (
	"testing"
	"time"
)

func TestFindClockOwner(t *testing.T) {
	forwardStep := clockStep{Size: 90 * time.Second}
	suspendedStep := clockStep{Size: 90 * time.Second, SuspendedFor: 90*time.Second - 3*time.Millisecond}
	backwardStep := clockStep{Size: -90 * time.Second, SuspendedFor: -90 * time.Second}
	for _, c := range []struct {
		name        string
		m           clockStep
		otherClocks []otherClock
		want        clockOwner
		incomplete  bool
	}{
		{"another one fits", forwardStep, []otherClock{otherUnknown, otherFits, otherSteppedToo}, ownerMaster, false},
		{"all moved alike", forwardStep, []otherClock{otherSteppedToo, otherSteppedToo}, ownerUnknown, false},
		{"all moved alike, and the machine was suspended", suspendedStep, []otherClock{otherSteppedToo, otherSteppedToo}, ownerThisMachine, false},
		{"suspended, but another one fits", suspendedStep, []otherClock{otherSteppedToo, otherFits}, ownerMaster, false},
		{"one is hung", forwardStep, []otherClock{otherSteppedToo, otherUnknown}, ownerUnknown, true},
		{"there is no other", forwardStep, nil, ownerUnknown, false},
		{"back", backwardStep, []otherClock{otherSteppedToo}, ownerUnknown, false},
	} {
		if got, incomplete := findClockOwner(c.m, c.otherClocks); got != c.want || incomplete != c.incomplete {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, incomplete, c.want, c.incomplete)
		}
	}
}

// TestSteppedBefore checks readings of a clock that last fitted 2 s ago, when it showed 100 s.
func TestSteppedBefore(t *testing.T) {
	fittedAt := time.Unix(1_700_000_000, 0)
	now := fittedAt.Add(2 * time.Second)
	for _, c := range []struct {
		name                  string
		stepSize              time.Duration
		markedAt, readingTime time.Duration // by the master's clock
		want                  bool
	}{
		{"forward before", time.Minute, 161 * time.Second, 162 * time.Second, true},
		{"back before", -time.Minute, 41 * time.Second, 42 * time.Second, true},
		{"forward after", time.Minute, 101 * time.Second, 162 * time.Second, false},
		{"back after", -time.Minute, 101 * time.Second, 42 * time.Second, false},
		{"forward, and it was seen to fit in between", time.Minute, 90 * time.Second, 162 * time.Second, false},
		{"too small to tell", time.Second, 102 * time.Second, 103 * time.Second, false},
		{"the time is not known", time.Minute, 0, 162 * time.Second, false},
	} {
		// The reply that fitted came when the step was seen, long after its request.
		lastFit := ClockReading{SentAt: fittedAt, ReceivedAt: now, ServerTime: 100 * time.Second}
		readingTime := ClockReading{SentAt: now.Add(-time.Millisecond), ReceivedAt: now, ServerTime: c.readingTime}
		if got := readingTime.SteppedBefore(c.markedAt, c.stepSize, lastFit); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
