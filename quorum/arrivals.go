package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/queue"
)

// PopResult is the result of a try to take a value that was stored under a key.
type PopResult = queue.PopResult

// The results: there was nothing to take; other clients were quicker; too few masters answered to
// tell, and nothing was changed; the wait has ended.
const (
	InVain       = queue.InVain
	Overtaken    = queue.Overtaken
	Undetermined = queue.Unlooked
	Made         = queue.Made
)

// BlockedPop is a value that another client may store under one of some keys.
type BlockedPop struct {
	// Keys are distinct.
	Keys []Key
	// Kind is the kind of the value. Clients that wait for different kinds under the same key do
	// not delay each other.
	Kind string
	// Wait is how long to wait for it. Below zero: without a limit.
	Wait time.Duration
	// Try is called once at first, then whenever the value may be there. It may take values only
	// under its own keys: those for which no other client of this Locker came before.
	Try func(own []bool) PopResult
}

// ErrPopTimeout is returned if nothing could be taken in time.
var ErrPopTimeout = errors.New("nothing was put there in time")

// AwaitPop waits in the queues of some keys, first come, first served, until it could take a
// value that was stored under one of them. It tries again only after a change.
//
// Errors: ErrPopTimeout when its time has passed, *NoQuorumError when it has passed while too few
// masters voted, or the cause of ctx. After an error the last Try took nothing.
func (l *Locker) AwaitPop(ctx context.Context, a BlockedPop) error {
	_, over := deadline(a.Wait)
	keys := make([]popKey, len(a.Keys))
	for i, key := range a.Keys {
		keys[i] = popKey{key, a.Kind}
	}
	switch l.blockedPops.Await(ctx, queue.Arrival[popKey]{
		Keys: keys, Over: over, Rand: l.opts.Rand, Try: a.Try, Quorum: l.quorumRegained,
		Alarm: func(a popKey, bell chan struct{}) queue.ChangeAlarm {
			return l.masterSet().alarmForChange(a.Key, bell)
		},
	}) {
	case queue.Over:
		return ErrPopTimeout
	case queue.Open:
		none := l.absence()
		if l.wasChanged(ctx, l.masterSet(), none) { // while the masters are changed no client can store anything
			return ErrPopTimeout
		}
		return none
	case queue.Left:
		return context.Cause(ctx)
	default:
		return nil
	}
}
