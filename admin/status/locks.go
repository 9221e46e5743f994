package status

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/quorum"
)

const (
	// maxLocks is how many locks are shown.
	maxLocks = 200
	// listPause is the shortest time between the end of a look at the locks and the next one. After
	// one that took long it is listShare times as long as that: whoever reaches the port costs the
	// masters no more.
	listPause = 3 * time.Second
	listShare = 4
	// listTime bounds a look.
	listTime = 3 * time.Second
	// turnTime bounds the wait of a question until it may be looked for, and turnPause is the time
	// between two tries.
	turnTime  = 5 * time.Second
	turnPause = 100 * time.Millisecond
	// maxGlob bounds the glob of a question, in bytes.
	maxGlob = 512
)

// Lock is what is shown of a lock; see package locks.
type Lock struct {
	Key        string
	State      string
	Left       time.Duration
	Votes      []quorum.Share
	Waiters    int
	Since      time.Time
	Addr, Name string
}

// question is which locks are asked for.
type question struct {
	db    int
	match string
}

// finding is what a look found.
type finding struct {
	question
	at    time.Time // zero: there was none
	locks []Lock
	more  bool // than are told
	err   error
}

// errTooSoon is told where somebody else has asked for other locks just now.
var errTooSoon = errors.New("the masters were asked for other locks just now: ask again in some seconds")

// lookout looks for locks, at most every few seconds for all who ask. It is safe for concurrent
// use.
type lookout struct {
	list func(ctx context.Context, db int, match string, count int) ([]Lock, error)

	mu      sync.Mutex
	last    finding
	looking bool
	next    time.Time
}

// look gives what was found last if that is the same question, or looks when it is time for that.
func (l *lookout) look(ctx context.Context, q question) finding {
	for end := time.Now().Add(turnTime); ; {
		last, turn := l.turn()
		switch {
		case turn:
			return l.lookNow(ctx, q)
		case last.question == q && !last.at.IsZero():
			return last
		case time.Now().After(end):
			return finding{question: q, err: errTooSoon}
		}
		select {
		case <-ctx.Done():
			return finding{question: q, err: context.Cause(ctx)}
		case <-time.After(turnPause):
		}
	}
}

// turn is what was found last, and whether the caller is to look now.
func (l *lookout) turn() (last finding, turn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looking || time.Now().Before(l.next) {
		return l.last, false
	}
	l.looking = true
	return l.last, true
}

func (l *lookout) lookNow(ctx context.Context, q question) finding {
	found := finding{question: q, err: errFailed}
	defer l.done(&found, time.Now())
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	found.locks, found.err = l.list(ctx, q.db, q.match, maxLocks+1)
	if len(found.locks) > maxLocks {
		found.locks, found.more = found.locks[:maxLocks], true
	}
	found.at = time.Now()
	return found
}

// errFailed stands for a look that did not come to its end.
var errFailed = errors.New("looking for locks failed")

// done notes what a look found that began at some time.
func (l *lookout) done(found *finding, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.last, l.looking = *found, false
	l.next = now.Add(max(listPause, listShare*now.Sub(began)))
}
