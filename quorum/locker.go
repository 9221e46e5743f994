package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/queue"
)

// Locker gives locks over a cluster, and does whatever that does. One Locker serves all clients of
// a process: those who wait for a key stand in one queue in it.
type Locker struct {
	*Cluster
	queues queue.Queues[Key]
	// arrivals are those who wait until something is put under a key. They are in nobody's way who
	// waits for a lock.
	arrivals queue.Lines[arrival]
}

// NewLocker makes the locker of a cluster, before that runs. Who waits in it is told
// of keys that the cluster frees.
func NewLocker(c *Cluster) *Locker {
	l := &Locker{Cluster: c}
	l.queues.Parks = func(k Key) bool { return len(k.Name) <= longestParked }
	l.queues.Others = peerWaiters{c, c.source.Attempt(), func() []string { return c.now().guards.Peers() }}
	c.freed, c.taking = l.queues.Released, l.queues.Taking
	return l
}

// longestParked is how long a key may be, in bytes, of which a queue is kept without need:
// thousands are.
const longestParked = 1 << 10

// Forever is a LockRequest.Wait without an end.
const Forever time.Duration = -1

// LockRequest asks for a lock.
type LockRequest struct {
	Key   Key
	Token string
	// TTL is how long the masters keep the lock, in whole milliseconds, or Endless.
	TTL time.Duration
	// Wait is how long to wait for it while another holds it. Zero: not at all.
	Wait time.Duration
	// Holder is whatever Holdings is to tell of who holds it.
	Holder any
	// Fence asks for a number, Grant.Fence, that is higher than that of any lock of the key before.
	Fence bool
}

// Lock takes a lock and returns its lease. A request that may wait is served first come, first
// served among those of this Locker, and its TTL starts at the grant; one that may not wait does
// not overtake those who do.
//
// Errors: ErrHeld when another holds it (and Wait is over), ErrTooShort, ErrContended, ErrFences,
// *NoQuorumError when that is not known (and Wait is over), or the cause of ctx if the caller left.
// After an error nothing is held.
func (l *Locker) Lock(ctx context.Context, req LockRequest) (Grant, error) {
	t := Taking{Keys: []Key{req.Key}, Terms: Terms{Tokens: []string{req.Token}, TTL: req.TTL, Holder: req.Holder, Fence: req.Fence}}
	if req.Wait != 0 {
		return l.waitAndLock(ctx, t, req.Wait)
	}
	for until := time.Now().Add(changePatience); ; {
		g, err := l.settled(ctx, until)
		if err != nil {
			return Grant{}, err
		}
		switch waits, open := l.queues.Waits(req.Key); {
		case open || waits && !l.HasQuorum():
			if none := l.absence(); !l.wasChanged(ctx, g, none) || time.Now().After(until) {
				return Grant{}, none
			}
		case waits:
			return Grant{}, ErrHeld
		default:
			return l.Take(ctx, t)
		}
	}
}

// waitAndLock stands in the queue of the key until it is the head of it, then contends until it is
// granted or its time is over.
func (l *Locker) waitAndLock(ctx context.Context, t Taking, wait time.Duration) (got Grant, err error) {
	until, over := after(wait)
	key := t.Keys[0]
	t.Until = until
	switch l.queues.Await(ctx, queue.Waiting[Key]{
		Key: key, Over: over, Rand: l.opts.Rand, Quorum: l.awaitQuorum,
		Try: func() queue.Tried {
			got, err = l.Take(ctx, t)
			return triedOf(err)
		},
		Alarm: func() queue.Alarm { return l.now().alarm(key) },
	}) {
	case queue.Over:
		return Grant{}, ErrHeld
	case queue.Open:
		if none := l.absence(); !l.wasChanged(ctx, l.now(), none) {
			return Grant{}, none
		}
		t.Until = time.Time{} // the masters are being changed: that is waited for, and once it is over it is tried
		return l.Take(ctx, t)
	case queue.Left:
		return Grant{}, context.Cause(ctx)
	}
	return got, err
}

func triedOf(err error) queue.Tried {
	switch {
	case err == nil:
		return queue.Taken
	case errors.Is(err, ErrHeld), errors.Is(err, ErrContended):
		return queue.Refused
	case errors.As(err, new(*NoQuorumError)):
		return queue.Unknown
	}
	return queue.Failed
}

// after is when a wait is over, which a channel tells: never, if it is negative. What is
// tried at that moment goes on to its end: only then it is known whether it was granted.
func after(wait time.Duration) (until time.Time, over <-chan time.Time) {
	if wait < 0 {
		return time.Time{}, nil
	}
	return time.Now().Add(wait), time.After(wait)
}

// Unlock gives a lock back. It returns ErrNotHeld when no majority holds the key with that
// token, *NoQuorumError when that cannot be known, or the cause of ctx; the release goes
// on to the other masters all the same.
func (l *Locker) Unlock(ctx context.Context, key Key, token string) error {
	return l.Release(ctx, key, token)
}

// Waiting is how many requests wait for a lock that another holds, or until something is put under
// a key.
func (l *Locker) Waiting() int { return l.queues.Len() + l.arrivals.Len() }

// Holdings is Cluster.Holdings, and tells how many requests wait here for each key.
func (l *Locker) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	found, err := l.Cluster.Holdings(ctx, keys)
	for i := range found {
		found[i].Waiters = l.queues.LenOf(keys[i])
	}
	return found, err
}

// arrival is something of a kind under a key.
type arrival struct {
	Key
	kind string
}
