package quorum

import (
	"context"
	"errors"
	"time"
)

// Locker gives locks over a cluster. One Locker serves all clients of a process:
// those who wait for a key stand in one queue in it.
type Locker struct {
	cluster *Cluster
	queues  queues
}

// NewLocker makes the locker of a cluster, before that runs. Who waits in it is told
// of keys that the cluster's Apply frees.
func NewLocker(c *Cluster) *Locker {
	l := &Locker{cluster: c, queues: queues{byKey: map[Key]*queue{}}}
	c.freed = l.queues.released
	return l
}

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
}

// Lock takes a lock and returns how long it is valid from now, by the monotonic
// clock. A request that may wait is served first come, first served among those
// of this Locker, and its TTL starts at the grant; one that may not wait does
// not overtake those who do.
//
// Errors: ErrHeld when another holds it (and Wait is over), *NoQuorumError, or
// the cause of ctx if the caller left. After an error nothing is held.
func (l *Locker) Lock(ctx context.Context, req LockRequest) (time.Duration, error) {
	switch {
	case req.Wait != 0:
		return l.waitAndLock(ctx, req)
	case l.queues.waiting(req.Key):
		return 0, ErrHeld
	default:
		return l.try(ctx, req)
	}
}

func (l *Locker) try(ctx context.Context, req LockRequest) (time.Duration, error) {
	return l.cluster.Commit(ctx, Acquire(req.Key, req.Token, req.TTL))
}

// waitAndLock stands in the queue of the key until it is the head of it, then
// contends until it is granted or its time is over.
func (l *Locker) waitAndLock(ctx context.Context, req LockRequest) (time.Duration, error) {
	place := l.queues.enter(req.Key)
	granted := false
	defer func() { l.queues.leave(place, granted) }()

	over, stop := after(req.Wait)
	defer stop()
	pause := pacing{rand: l.cluster.rand}
	next := place.turn
	var timer <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-over:
			return 0, ErrHeld
		case cue := <-next:
			next = place.turn
			if delay := cue.delay(pause.rand); delay > 0 {
				timer = time.After(delay)
				continue
			}
			pause.reset()
		case <-timer:
		}
		validity, err := l.try(ctx, req)
		if !errors.Is(err, ErrHeld) {
			granted = err == nil
			return validity, err
		}
		timer = time.After(pause.next())
	}
}

// after is a channel that speaks once d is over: never, if d is negative.
func after(d time.Duration) (over <-chan time.Time, stop func()) {
	if d < 0 {
		return nil, func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}

// Unlock gives a lock back. It returns ErrNotHeld when no majority can have held
// the key with that token, *NoQuorumError when too few masters answered to know,
// or the cause of ctx; the release goes on to the other masters all the same.
func (l *Locker) Unlock(ctx context.Context, key Key, token string) error {
	release := l.cluster.begin(Release(key, token))
	// The head's SET leaves behind the release in every lane, perhaps in the same
	// batch: it need not wait for the answers.
	l.queues.released(key)
	_, err := release.commit(ctx)
	return err
}

// Extend gives a lock that is held a new TTL, in whole milliseconds from now, and
// returns how long it is valid. It returns ErrNotHeld when no majority holds the
// key with that token (any more), *NoQuorumError, or the cause of ctx.
func (l *Locker) Extend(ctx context.Context, key Key, token string, ttl time.Duration) (time.Duration, error) {
	return l.cluster.Commit(ctx, Extend(key, token, ttl))
}
