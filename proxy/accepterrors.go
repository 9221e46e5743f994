package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// acceptPause is how long nothing is accepted after a failure: redcon would try again
	// at once, and the usual reason, no file descriptor left, does not pass by itself.
	acceptPause = 50 * time.Millisecond
	// acceptLogEvery is how often failures are logged, at most.
	acceptLogEvery = time.Minute
)

// acceptErrors are the connections that could not be accepted. Only the accept loop adds
// to them.
type acceptErrors struct {
	log    *slog.Logger
	count  atomic.Int64
	logged time.Time // when one was logged last
	known  int64     // how many there were by then
}

// another counts a failure, logs it unless one was logged just now, and pauses.
func (a *acceptErrors) another(err error) {
	a.report(err, time.Now())
	time.Sleep(acceptPause)
}

func (a *acceptErrors) report(err error, now time.Time) {
	n := a.count.Add(1)
	if !a.logged.IsZero() && now.Sub(a.logged) < acceptLogEvery {
		return
	}
	a.log.Error("cannot accept a client", "cause", err, "failures", n-a.known)
	a.logged, a.known = now, n
}
