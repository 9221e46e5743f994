package proxy

import (
	"context"
	"sync/atomic"
)

// maxHalfClosed is the number of half-closed clients that may wait for their turn without a check
// whether their connections are reset.
const maxHalfClosed = 64

// halfClosedQueue runs the commands of half-closed clients one at a time. Such a client sends no
// more bytes, but may still read. Without the queue, a client that sends a pipeline, disconnects
// and reconnects could have any number of commands running at the same time.
type halfClosedQueue struct {
	turn           chan struct{} // holds a value while a client has the turn
	waitingClients atomic.Int64
}

// beginTurn waits for the turn of a half-closed client. If too many such clients wait, it sends
// the client the pending replies, and drops the client if its connection is reset.
func (l *halfClosedQueue) beginTurn(ctx context.Context, flush func() error, isReset func() bool) error {
	defer l.waitingClients.Add(-1)
	if l.waitingClients.Add(1) > maxHalfClosed {
		if err := flush(); err != nil {
			return err
		}
		if isReset() {
			return errClientDisconnected
		}
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// endTurn lets the next half-closed client continue.
func (l *halfClosedQueue) endTurn() { <-l.turn }
