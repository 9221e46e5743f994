package status

import (
	"context"
	"errors"
	"sync"
	"time"

	"redlock-proxy/quorum"
)

const (
	// maxLocks is the maximum number of locks on the page.
	maxLocks = 200
	// listPause is the minimum time between two listings. After a slow listing, the pause is
	// pauseFactor times its duration. This limits the load that clients of the port, which has no
	// login, can put on the masters.
	listPause   = 3 * time.Second
	pauseFactor = 4
	// listTimeout limits the duration of a listing.
	listTimeout = 3 * time.Second
	// turnTimeout limits how long a request waits until it may list locks, and turnPollInterval is
	// the time between two tries.
	turnTimeout      = 5 * time.Second
	turnPollInterval = 100 * time.Millisecond
	// maxGlob is the maximum length of a glob, in bytes.
	maxGlob = 512
)

// Lock describes a lock on the page. Package commands/locks documents the fields.
type Lock struct {
	Key        string
	State      string
	TimeLeft   time.Duration
	Votes      []quorum.MasterAnswer
	Waiters    int
	GrantedAt  time.Time
	Addr, Name string
	Kept       bool
	// Slots has the meaning of locks.Lock.Slots. Holders is the number of holders if Slots is not
	// 0.
	Slots, Holders int
}

// query selects the locks to list.
type query struct {
	db    int
	match string
}

// listing holds the result of a query.
type listing struct {
	query
	at      time.Time // zero if the lister has not asked the masters
	locks   []Lock
	hasMore bool // more locks match than the field locks holds
	err     error
}

// errTooSoon refuses a query during the pause after a different query.
var errTooSoon = errors.New("cannot list these locks now: another request has just listed different locks; " +
	"try again in a few seconds")

// lister lists locks, at most once every few seconds for all clients together. It is safe for
// concurrent use.
type lister struct {
	list func(ctx context.Context, db int, match string, count int) ([]Lock, error)

	mu          sync.Mutex
	lastListing listing
	running     bool
	nextAllowed time.Time
}

// get returns the last listing if it is for the same query and the next listing may not start yet.
// Otherwise get waits for its turn, and lists the locks.
func (l *lister) get(ctx context.Context, q query) listing {
	for end := time.Now().Add(turnTimeout); ; {
		last, started := l.tryStart()
		switch {
		case started:
			return l.run(ctx, q)
		case last.query == q && !last.at.IsZero():
			return last
		case time.Now().After(end):
			return listing{query: q, err: errTooSoon}
		}
		select {
		case <-ctx.Done():
			return listing{query: q, err: context.Cause(ctx)}
		case <-time.After(turnPollInterval):
		}
	}
}

// tryStart returns the last listing, and whether the caller may start a new listing now.
func (l *lister) tryStart() (last listing, started bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running || time.Now().Before(l.nextAllowed) {
		return l.lastListing, false
	}
	l.running = true
	return l.lastListing, true
}

func (l *lister) run(requestCtx context.Context, q query) listing {
	found := listing{query: q, err: errListingPanicked}
	defer l.finish(&found, time.Now())
	ctx, cancel := context.WithTimeout(requestCtx, listTimeout)
	defer cancel()
	found.locks, found.err = l.list(ctx, q.db, q.match, maxLocks+1)
	if requestCtx.Err() != nil { // at stays zero, so that no other request gets this listing
		return found
	}
	if len(found.locks) > maxLocks {
		found.locks, found.hasMore = found.locks[:maxLocks], true
	}
	found.at = time.Now()
	return found
}

// errListingPanicked reports that a listing panicked.
var errListingPanicked = errors.New("cannot list the locks: internal error; see the proxy's log")

// finish stores a listing, and sets the time from which the next listing may start. start is the
// time at which the listing started.
func (l *lister) finish(result *listing, start time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.lastListing, l.running = *result, false
	l.nextAllowed = now.Add(max(listPause, pauseFactor*now.Sub(start)))
}
