package redistest

import (
	"testing"
	"time"
)

// Await checks a condition until it is met: first after a millisecond, later ten times a second. So
// it returns early for quick changes and does not slow down long ones. After a minute it fails the
// test.
func Await(t testing.TB, what string, met func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(time.Minute); !met(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: " + what)
		}
		time.Sleep(pause) // polls
	}
}
