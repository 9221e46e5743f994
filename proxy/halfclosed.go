package proxy

import (
	"context"
	"sync/atomic"
)

// maxHalfClosed limits how many clients that send no more may wait for their turn.
const maxHalfClosed = 64

// halfClosedQueue runs the commands of all clients that send no more, one at a time. Redis also
// runs commands that have arrived before their client left, but needs no time for that. Without the
// queue, a client that sends a pipeline, leaves and comes back could have any number of commands
// under way, each with the share of one client.
type halfClosedQueue struct {
	turn    chan struct{} // holds a value while a client has the turn
	waiting atomic.Int64
}

// queue waits for the turn of a client that sends no more. If too many such clients wait, it drops
// a client that no longer reads: it has reset the connection, or does so when it gets a reply.
func (l *halfClosedQueue) queue(ctx context.Context, flush func() error, isReset func() bool) error {
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > maxHalfClosed {
		if err := flush(); err != nil {
			return err
		}
		if isReset() {
			return errClientLeft
		}
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done ends the turn.
func (l *halfClosedQueue) done() { <-l.turn }
