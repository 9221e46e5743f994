package guard

import (
	"testing"
	"time"
)

func TestWhoseClock(t *testing.T) {
	forward := clockStep{Moved: 90 * time.Second}
	slept := clockStep{Moved: 90 * time.Second, Missed: 90*time.Second - 3*time.Millisecond}
	back := clockStep{Moved: -90 * time.Second, Missed: -90 * time.Second}
	for _, c := range []struct {
		name   string
		m      clockStep
		others []otherClock
		want   clockOwner
		asked  bool
	}{
		{"another one fits", forward, []otherClock{otherUnknown, otherFits, otherAlike}, ownerMaster, false},
		{"all moved alike", forward, []otherClock{otherAlike, otherAlike}, ownerUnclear, false},
		{"all moved alike, and the machine was suspended", slept, []otherClock{otherAlike, otherAlike}, ownerOurs, false},
		{"suspended, but another one fits", slept, []otherClock{otherAlike, otherFits}, ownerMaster, false},
		{"one is hung", forward, []otherClock{otherAlike, otherUnknown}, ownerUnclear, true},
		{"there is no other", forward, nil, ownerUnclear, false},
		{"back", back, []otherClock{otherAlike}, ownerUnclear, false},
	} {
		if got, asked := ownerOf(c.m, c.others); got != c.want || asked != c.asked {
			t.Errorf("%s: got %d, %v, want %d, %v", c.name, got, asked, c.want, c.asked)
		}
	}
}

// TestSteppedBefore reads a clock that showed 100 s when it last fitted, 2 s later.
func TestSteppedBefore(t *testing.T) {
	fitted := time.Unix(1_700_000_000, 0)
	now := fitted.Add(2 * time.Second)
	for _, c := range []struct {
		name       string
		moved      time.Duration
		then, seen time.Duration // by the master's clock
		want       bool
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
		last := Sighting{Sent: fitted, Got: now, ServerTime: 100 * time.Second}
		seen := Sighting{Sent: now.Add(-time.Millisecond), Got: now, ServerTime: c.seen}
		if got := seen.SteppedBefore(c.then, c.moved, last); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
