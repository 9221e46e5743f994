package redistest

import (
	"testing"
	"time"
)

// Await checks a condition until it is met, with pauses that grow from 1 ms to 100 ms. Short pauses
// notice quick changes early, and long pauses do not slow down long changes. After a minute, Await
// fails the test.
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
