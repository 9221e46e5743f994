package redistest

import (
	"testing"
	"time"
)

// Await looks at a condition until it is met, first after a millisecond, later ten times a second.
// It ends the test if that takes longer than a minute: what comes at once is seen at once, and what
// takes long is not kept from coming by who looks.
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
