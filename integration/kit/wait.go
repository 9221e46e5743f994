package kit

import (
	"errors"
	"testing"
	"time"
)

// A test looks again after firstPause, and then after twice as long each time, up to longestPause:
// what comes at once is seen at once, and what takes long is not kept from coming by those who
// look.
const firstPause, longestPause = time.Millisecond, 32 * time.Millisecond

// Settles wants a condition within two seconds: the proxy answers at a majority, and the other
// masters follow.
func Settles(t *testing.T, condition func() error) {
	t.Helper()
	Within(t, 2*time.Second, condition)
}

// Soon wants a condition within Patience: longer than a quarantine that ends by a catch-up.
func Soon(t *testing.T, condition func() error) {
	t.Helper()
	Within(t, Patience, condition)
}

// Await is Soon for a condition that has no more to say than what is waited for.
func Await(t *testing.T, what string, met func() bool) {
	t.Helper()
	notYet := errors.New("not within a minute: " + what)
	Soon(t, func() error {
		if met() {
			return nil
		}
		return notYet
	})
}

// Within looks at a condition until it is met. The test ends with its last error if that takes too
// long.
func Within(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	end, pause := time.Now().Add(limit), firstPause
	err := condition()
	for ; err != nil && time.Now().Before(end); err = condition() {
		time.Sleep(pause) // polls
		pause = min(2*pause, longestPause)
	}
	Must(t, err)
}
