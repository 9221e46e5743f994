package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/queue"
)

// PopResult is the result of one try to pop a value.
type PopResult = queue.PopResult

// The results of a try. PopNothingStored means that no value is stored, PopOvertaken that other
// clients took the values first. PopUndetermined means that too few masters answered, and the try
// changed nothing. PopEnded ends the wait, because the try took a value or failed.
const (
	PopNothingStored = queue.PopNothingStored
	PopOvertaken     = queue.PopOvertaken
	PopUndetermined  = queue.PopUndetermined
	PopEnded         = queue.PopEnded
)

// BlockedPop is a request to pop a value as soon as a client stores a value under one of the Keys.
type BlockedPop struct {
	// Keys holds distinct keys.
	Keys []Key
	// Kind is the kind of the value. Clients that wait for different kinds under the same key do
	// not delay each other.
	Kind string
	// Wait is the time limit. A negative value means no limit.
	Wait time.Duration
	// Try tries to pop a value. AwaitPop calls Try at once, and again whenever a client may have
	// stored a value. isFirst[i] is set if no earlier client of this Locker waits for Keys[i]. Try
	// may take values only under such keys.
	Try func(isFirst []bool) PopResult
}

// ErrPopTimeout means that Try took no value in time.
var ErrPopTimeout = errors.New("no element was added to the keys in time")

// AwaitPop waits in the queues of the keys, first come, first served, until Try returns PopEnded.
// It calls Try again when a key may have changed, and otherwise at most once a minute.
//
// Errors: ErrPopTimeout if the time limit has passed; *NoQuorumError if it has passed while too few
// masters vote or the last Try returned PopUndetermined; or the cause of ctx. While the masters are
// being changed, the error is ErrPopTimeout. After an error the last Try took nothing.
func (l *Locker) AwaitPop(ctx context.Context, a BlockedPop) error {
	_, timeout := deadline(a.Wait)
	keys := make([]popKey, len(a.Keys))
	for i, key := range a.Keys {
		keys[i] = popKey{key, a.Kind}
	}
	switch l.blockedPops.Await(ctx, queue.ValueWaitOptions[popKey]{
		Keys: keys, Timeout: timeout, Rand: l.opts.Rand, Try: a.Try, QuorumRegained: l.quorumRegained,
		Alarm: func(a popKey, changed chan struct{}) queue.ChangeAlarm {
			return l.masterSet().alarmForChange(a.Key, changed)
		},
	}) {
	case queue.WaitTimedOut:
		return ErrPopTimeout
	case queue.WaitTimedOutUndecided:
		noQuorum := l.noQuorum()
		// No client can store a value while the masters are being changed. So no value was
		// missed, and the wait has timed out.
		if l.wasChanged(ctx, l.masterSet(), noQuorum) {
			return ErrPopTimeout
		}
		return noQuorum
	case queue.WaitCanceled:
		return context.Cause(ctx)
	default:
		return nil
	}
}
