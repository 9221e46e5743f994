package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"redlock-proxy/quorum/queue"
)

// Locker grants locks over a cluster. One Locker serves all clients of a process: the clients that
// wait for a key share a queue.
type Locker struct {
	*Cluster
	queues queue.Queues[Key]
	// blockedPops queues the clients that wait until another client stores a value under a key.
	// They do not delay clients that wait for a lock.
	blockedPops queue.ValueQueues[popKey]
}

// NewLocker creates the locker of a cluster. It must be called before the cluster runs. The cluster
// notifies the locker of keys that become free.
func NewLocker(c *Cluster) *Locker {
	l := &Locker{Cluster: c}
	l.queues.MayKeepEmpty = func(k Key) bool { return len(k.Name) <= maxEmptyQueueKey }
	l.queues.Peers = peerWaiters{c, c.source.Attempt(), func() []string { return c.masterSet().guards.PeerIDs() }}
	c.onFreed, c.onTaking = l.queues.RecordRelease, l.queues.SendTake
	return l
}

// maxEmptyQueueKey is the maximum length, in bytes, of a key whose empty queue the Locker keeps.
// The limit saves memory, because the Locker keeps thousands of empty queues.
const maxEmptyQueueKey = 1 << 10

// NoWaitLimit is a LockRequest.Wait without a limit.
const NoWaitLimit time.Duration = -1

// LockRequest requests a lock of one or several keys, all or none.
type LockRequest struct {
	// Keys are distinct keys of one database.
	Keys []Key
	// Token is the token of each key.
	Token string
	// Slots is the number of clients that may hold the lock at the same time, each with its own
	// Token, Unlimited, or 0 for an exclusive lock. All clients of a lock use the same number. It
	// is 0 for several keys.
	Slots int
	// TTL is the time for which the masters keep the lock, in whole milliseconds, or NoExpiry.
	TTL time.Duration
	// Wait limits the time for which the request waits while another client holds the lock. Zero
	// means no wait, NoWaitLimit no limit.
	Wait time.Duration
	// Holder describes the client; Holdings returns it for the lock.
	Holder any
	// Fence requests GrantedLock.Fence, which is higher than any earlier fence of the keys.
	Fence bool
}

// Lock takes a lock and returns its lease. This Locker serves requests with a Wait first come,
// first served; the TTL starts at the grant. A request without a Wait does not overtake requests
// that wait until another client releases one of its keys. A request for several keys waits in the
// queue of each of them, and holds none while it waits.
//
// Errors: ErrTooShort, ErrContended, ErrFences, *SlotsError, or the cause of ctx if the caller
// left. Once Wait has passed, ErrHeld if another client holds the lock, or *NoQuorumError if the
// state of the lock is unknown. After an error the request holds nothing.
func (l *Locker) Lock(ctx context.Context, req LockRequest) (GrantedLock, error) {
	t := TakeRequest{Keys: req.Keys, Slots: req.Slots, TakeOptions: TakeOptions{
		Tokens: slices.Repeat([]string{req.Token}, len(req.Keys)), TTL: req.TTL, Holder: req.Holder, Fence: req.Fence,
	}}
	if req.Wait != 0 {
		return l.waitAndLock(ctx, t, req.Wait)
	}
	for until := time.Now().Add(changeTimeout); ; {
		set, err := l.stableSet(ctx, until)
		if err != nil {
			return GrantedLock{}, err
		}
		switch hasWaiters, isUndetermined := l.hasWaiters(req.Keys); {
		case isUndetermined || hasWaiters && !l.HasQuorum():
			if noQuorum := l.noQuorum(); !l.wasChanged(ctx, set, noQuorum) || time.Now().After(until) {
				return GrantedLock{}, noQuorum
			}
		case hasWaiters:
			return GrantedLock{}, ErrHeld
		default:
			return l.Take(ctx, t)
		}
	}
}

// hasWaiters reports whether requests wait until another client releases one of the keys, and
// whether the holder of one of the keys is unknown.
func (l *Locker) hasWaiters(keys []Key) (waits, undetermined bool) {
	for _, key := range keys {
		keyWaits, keyUndetermined := l.queues.HasWaiter(key)
		waits, undetermined = waits || keyWaits, undetermined || keyUndetermined
	}
	return waits, undetermined
}

// waitAndLock waits in the queues of the keys until the request is first. Then it tries to take the
// lock until the lock is granted or the time limit is reached.
func (l *Locker) waitAndLock(ctx context.Context, t TakeRequest, wait time.Duration) (grant GrantedLock, err error) {
	until, timeout := deadline(wait)
	t.RetryUntil = until
	writer := newWaitingWriter(l, t.Keys[0])
	defer func() { writer.end(err == nil && !grant.LeaseStart.IsZero()) }()
	switch l.queues.Await(ctx, queue.LockWaitOptions[Key]{
		Keys: t.Keys, Timeout: timeout, Rand: l.opts.Rand, QuorumRegained: l.quorumRegained, Slots: t.Slots,
		Try: func() (result queue.TryResult, key, freeSlots int) {
			grant, err = l.Take(ctx, t)
			if t.Slots == 0 && len(t.Keys) == 1 {
				writer.announce(ctx, err)
			}
			return tryResult(err), refusingKey(err), grant.FreeSlots
		},
		Alarm: func(key Key) queue.Alarm { return l.masterSet().waiterAlarm(key, t.Slots) },
	}) {
	case queue.WaitTimedOut:
		return GrantedLock{}, ErrHeld
	case queue.WaitTimedOutUndecided:
		if noQuorum := l.noQuorum(); !l.wasChanged(ctx, l.masterSet(), noQuorum) {
			return GrantedLock{}, noQuorum
		}
		// The masters are being changed: Take waits for the change, then tries once.
		t.RetryUntil = time.Time{}
		return l.Take(ctx, t)
	case queue.WaitCanceled:
		return GrantedLock{}, context.Cause(ctx)
	}
	return grant, err
}

func tryResult(err error) queue.TryResult {
	switch {
	case err == nil:
		return queue.TryTaken
	case errors.Is(err, ErrHeld), errors.Is(err, ErrContended):
		return queue.TryRefused
	case errors.As(err, new(*NoQuorumError)):
		return queue.TryUnknown
	}
	return queue.TryFailed
}

// refusingKey returns the index of the key that refused a Take, or -1 if it is unknown.
func refusingKey(err error) int {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Key
	}
	return -1
}

// deadline returns the end of a wait, and a channel that reports it. A negative wait has no end. A
// try that runs at the end of the wait continues: only its result shows whether the lock was
// granted.
func deadline(wait time.Duration) (endTime time.Time, timeout <-chan time.Time) {
	if wait < 0 {
		return time.Time{}, nil
	}
	return time.Now().Add(wait), time.After(wait)
}

// Unlock releases a lock. It returns ErrNotHeld if no majority holds the key with the token,
// *NoQuorumError if that is unknown, or the cause of ctx. After Unlock has returned, the release
// continues on the remaining masters.
func (l *Locker) Unlock(ctx context.Context, key Key, token string) error {
	return l.Release(ctx, key, token)
}

// WaiterCount returns the number of requests that wait for a lock, or until another client stores a
// value under a key.
func (l *Locker) WaiterCount() int { return l.queues.Len() + l.blockedPops.Len() }

// Holdings returns the result of Cluster.Holdings, with the number of requests that wait in this
// process for each key.
func (l *Locker) Holdings(ctx context.Context, keys []Key) ([]Holding, error) {
	holdings, err := l.Cluster.Holdings(ctx, keys)
	for i := range holdings {
		holdings[i].Waiters = l.queues.LenOf(keys[i])
	}
	return holdings, err
}

// popKey is a key, and the kind of value for which clients wait.
type popKey struct {
	Key
	kind string
}
