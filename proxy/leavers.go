package proxy

import (
	"context"
	"sync/atomic"
)

// maxGone is how many clients that are gone may wait for their turn.
const maxGone = 64

// leavers has commands of clients that send no more carried out one at a time, of all these
// clients. What had arrived of them is carried out, as on a Redis, but there it takes no time: here
// who sends a pipeline, leaves, and comes again with the next one would have any number under way,
// and each of them the share of a client.
type leavers struct {
	turn    chan struct{} // room for the one whose turn it is
	waiting atomic.Int64
}

// queue waits for the turn of a client that sends no more. Where too many of those wait, they are
// dropped for which nobody waits: their clients have reset the connection, or do so when they get a
// reply.
func (l *leavers) queue(ctx context.Context, flush func() error, isReset func() bool) error {
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > maxGone {
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

// done ends it.
func (l *leavers) done() { <-l.turn }
