package kit

import (
	"errors"
	"testing"
	"time"
)

// firstPollInterval is AwaitWithin's first pause between two checks. Each pause is twice as long as
// the previous one, up to maxPollInterval. So AwaitWithin notices quick changes early, and polls
// rarely during long changes.
const firstPollInterval, maxPollInterval = time.Millisecond, 32 * time.Millisecond

// AwaitShortly waits until a condition is met, at most five seconds. The proxy replies after a
// majority has answered; the other masters may answer later.
func AwaitShortly(t *testing.T, condition func() error) {
	t.Helper()
	AwaitWithin(t, 5*time.Second, condition)
}

// Eventually waits until a condition is met, at most WaitLimit, which is longer than a quarantine
// that ends with a catch-up.
func Eventually(t *testing.T, condition func() error) {
	t.Helper()
	AwaitWithin(t, WaitLimit, condition)
}

// Await waits until a condition is met, like Eventually. The parameter subject describes the
// condition.
func Await(t *testing.T, subject string, condition func() bool) {
	t.Helper()
	notYet := errors.New("not within a minute: " + subject)
	Eventually(t, func() error {
		if condition() {
			return nil
		}
		return notYet
	})
}

// AwaitWithin waits until a condition returns nil. After limit, it ends the test with the last
// error.
func AwaitWithin(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	end, pause := time.Now().Add(limit), firstPollInterval
	err := condition()
	for ; err != nil && time.Now().Before(end); err = condition() {
		time.Sleep(pause) // polls
		pause = min(2*pause, maxPollInterval)
	}
	Must(t, err)
}
