package quorum

import (
	"context"
	"errors"
	"time"

	"redlock-proxy/quorum/queue"
)

// Attempt is what came of trying to take what was put under a key.
type Attempt = queue.Attempt

// What comes of it: nothing is there; others were quicker; too few masters answered to tell, and
// nothing was changed; the wait is over.
const (
	InVain    = queue.InVain
	Overtaken = queue.Overtaken
	Unlooked  = queue.Unlooked
	Made      = queue.Made
)

// Arrival is something that may be put under one of some keys.
type Arrival struct {
	// Keys are distinct.
	Keys []Key
	// Kind is what is waited for: those who wait for something else under the same key are in
	// nobody's way.
	Kind string
	// Wait is how long to wait for it. Below zero: without an end.
	Wait time.Duration
	// Try is called once at first, then whenever it may be there. It may take what is under those
	// of the keys that are its own: of this Locker nobody came before for them.
	Try func(own []bool) Attempt
}

// ErrNoArrival says that nothing could be taken in time.
var ErrNoArrival = errors.New("nothing was put there in time")

// AwaitArrival stands in the queues of some keys, first come, first served, until something that is
// put under one of them could be taken. While nothing changes nothing is tried.
//
// Errors: ErrNoArrival when its time was over, *NoQuorumError when it was over while too few
// masters voted, or the cause of ctx. After all of them the last Try was in vain.
func (l *Locker) AwaitArrival(ctx context.Context, a Arrival) error {
	_, over := after(a.Wait)
	keys := make([]arrival, len(a.Keys))
	for i, key := range a.Keys {
		keys[i] = arrival{key, a.Kind}
	}
	switch l.arrivals.Await(ctx, queue.Arrival[arrival]{
		Keys: keys, Over: over, Rand: l.opts.Rand, Try: a.Try, Quorum: l.awaitQuorum,
		Alarm: func(a arrival, bell chan struct{}) queue.ChangeAlarm {
			return l.now().alarmForChange(a.Key, bell)
		},
	}) {
	case queue.Over:
		return ErrNoArrival
	case queue.Open:
		none := l.absence()
		if l.wasChanged(ctx, l.now(), none) { // while the masters are changed nothing is put anywhere
			return ErrNoArrival
		}
		return none
	case queue.Left:
		return context.Cause(ctx)
	default:
		return nil
	}
}
