package register

import (
	"context"
	"sync"
)

// keyQueues serializes the updates of each key: concurrent updates would overtake each other's
// ballots.
type keyQueues struct {
	mu    sync.Mutex
	byKey map[string]*keyQueue
}

type keyQueue struct {
	slot  chan struct{} // full while a command runs
	users int
}

// acquire waits for the caller's turn. release ends the turn.
func (l *keyQueues) acquire(ctx context.Context, key string) (release func(), err error) {
	l.mu.Lock()
	queue := l.byKey[key]
	if queue == nil {
		queue = &keyQueue{slot: make(chan struct{}, 1)}
		l.byKey[key] = queue
	}
	queue.users++
	l.mu.Unlock()
	select {
	case queue.slot <- struct{}{}:
		return func() { <-queue.slot; l.drop(key, queue) }, nil
	case <-ctx.Done():
		l.drop(key, queue)
		return nil, context.Cause(ctx)
	}
}

func (l *keyQueues) drop(key string, queue *keyQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue.users--; queue.users == 0 {
		delete(l.byKey, key)
	}
}
