package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/queue"
)

// PopResult is the result of one try to pop a value.
type PopResult = queue.PopResult

// The results of a try: no value is stored, other clients took the values first, too few masters
// answered and nothing was changed, or a value was taken.
const (
	NothingStored = queue.NothingStored
	Overtaken     = queue.Overtaken
	Undetermined  = queue.Undetermined
	Made          = queue.PopEnded
)

// BlockedPop is a request to pop a value as soon as a client stores one under one of some keys.
type BlockedPop struct {
	// Keys holds distinct keys.
	Keys []Key
	// Kind is the kind of the value. Clients that wait for different kinds under the same key do
	// not delay each other.
	Kind string
	// Wait is the time limit. A negative one means no limit.
	Wait time.Duration
	// Try is called once at first, then whenever a value may have been stored. It may take values
	// only under the keys with own set: the keys for which no earlier client of this Locker waits.
	Try func(own []bool) PopResult
}

// ErrPopTimeout is returned if no value could be taken in time.
var ErrPopTimeout = errors.New("no element was added to the keys in time")

// AwaitPop waits in the queues of some keys, first come, first served, until it has taken a value
// that was stored under one of them. It tries again only after a change.
//
// Errors: ErrPopTimeout when the time has passed, *NoQuorumError if too few masters voted at that
// time, or the cause of ctx. After an error the last Try took nothing.
func (l *Locker) AwaitPop(ctx context.Context, a BlockedPop) error {
	_, timeout := deadline(a.Wait)
	keys := make([]popKey, len(a.Keys))
	for i, key := range a.Keys {
		keys[i] = popKey{key, a.Kind}
	}
	switch l.blockedPops.Await(ctx, queue.ValueWaitOptions[popKey]{
		Keys: keys, Timeout: timeout, Rand: l.opts.Rand, Try: a.Try, Quorum: l.quorumRegained,
		Alarm: func(a popKey, changed chan struct{}) queue.ChangeAlarm {
			return l.masterSet().alarmForChange(a.Key, changed)
		},
	}) {
	case queue.TimedOut:
		return ErrPopTimeout
	case queue.TimedOutUndecided:
		noQuorum := l.noQuorum()
		// While the masters are changed, no client can store anything.
		if l.wasChanged(ctx, l.masterSet(), noQuorum) {
			return ErrPopTimeout
		}
		return noQuorum
	case queue.Canceled:
		return context.Cause(ctx)
	default:
		return nil
	}
}
