package redistest

import (
	"testing"
	"time"
)

// Await checks a condition until it is met: first after a millisecond, later ten times a second. So
// it returns early for quick changes and does not slow down long ones. After a minute it fails the
// test.
func Await(t testing.TB, condition string, isMet func() bool) {
	t.Helper()
	pause := time.Millisecond
	for deadline := time.Now().Add(time.Minute); !isMet(); pause = min(2*pause, 100*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within a minute: " + condition)
		}
		time.Sleep(pause) // polls
	}
}
