package cluster

import (
	"context"
	"math"
	"sync"
)

// polls numbers the polls of the cluster, so that a caller can wait for one. It is safe for
// concurrent use.
type polls struct {
	mu                   sync.Mutex
	beginCount, endCount int
	changed              chan struct{} // is closed at the end of a poll
}

func (l *polls) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginCount++
}

func (l *polls) end() { l.finish(func() int { return l.beginCount }) }

// stop ends all waits, because there will be no more polls.
func (l *polls) stop() { l.finish(func() int { return math.MaxInt }) }

// finish records that all polls up to a number have ended, and wakes the waiters.
func (l *polls) finish(upTo func() int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endCount = upTo()
	close(l.changed)
	l.changed = make(chan struct{})
}

// next returns the number of the next poll that begins.
func (l *polls) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.beginCount + 1
}

// wait waits until the poll with this number has ended, or ctx ends.
func (l *polls) wait(ctx context.Context, number int) error {
	for {
		done, changed := l.state()
		if done >= number {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *polls) state() (done int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endCount, l.changed
}
