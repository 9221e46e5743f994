package register

import (
	"context"
	"sync"
)

// keyQueues serializes the updates of each key, which would only overtake each other's ballots.
type keyQueues struct {
	mu    sync.Mutex
	byKey map[string]*keyQueue
}

type keyQueue struct {
	turn chan struct{} // full while a command runs
	size int
}

// enter waits for the caller's turn. leave ends the turn.
func (l *keyQueues) enter(ctx context.Context, key string) (leave func(), err error) {
	l.mu.Lock()
	queue := l.byKey[key]
	if queue == nil {
		queue = &keyQueue{turn: make(chan struct{}, 1)}
		l.byKey[key] = queue
	}
	queue.size++
	l.mu.Unlock()
	select {
	case queue.turn <- struct{}{}:
		return func() { <-queue.turn; l.quit(key, queue) }, nil
	case <-ctx.Done():
		l.quit(key, queue)
		return nil, context.Cause(ctx)
	}
}

func (l *keyQueues) quit(key string, queue *keyQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if queue.size--; queue.size == 0 {
		delete(l.byKey, key)
	}
}
