package proxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// acceptPause is the pause after a failure. redcon would try again immediately, but the usual
	// cause, no free file descriptor, does not pass by itself.
	acceptPause = 50 * time.Millisecond
	// acceptLogInterval is the minimum time between two log entries.
	acceptLogInterval = time.Minute
)

// acceptErrors counts and logs connections that could not be accepted. It is safe for concurrent
// use.
type acceptErrors struct {
	log   *slog.Logger
	count atomic.Int64

	mu          sync.Mutex
	loggedAt    time.Time // time of the last log entry
	loggedCount int64     // value of count at the last log entry
}

// record counts a failure, logs it unless record has logged another failure within
// acceptLogInterval, and pauses.
func (a *acceptErrors) record(err error) {
	a.report(err, time.Now())
	time.Sleep(acceptPause)
}

func (a *acceptErrors) report(err error, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.count.Add(1)
	if !a.loggedAt.IsZero() && now.Sub(a.loggedAt) < acceptLogInterval {
		return
	}
	a.log.Error("cannot accept a client", "cause", err, "failures", n-a.loggedCount)
	a.loggedAt, a.loggedCount = now, n
}
