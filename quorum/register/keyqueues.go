package register

import (
	"context"
	"sync"
)

// keyQueues let commands that replace the value of one key go one after another in this process:
// they would only overtake each other's ballots.
type keyQueues struct {
	mu    sync.Mutex
	byKey map[string]*keyQueue
}

type keyQueue struct {
	turn chan struct{} // holds one token: whose turn it is
	size int
}

// enter waits for the turn. leave gives it up.
func (l *keyQueues) enter(ctx context.Context, key string) (leave func(), err error) {
	l.mu.Lock()
	one := l.byKey[key]
	if one == nil {
		one = &keyQueue{turn: make(chan struct{}, 1)}
		l.byKey[key] = one
	}
	one.size++
	l.mu.Unlock()
	select {
	case one.turn <- struct{}{}:
		return func() { <-one.turn; l.quit(key, one) }, nil
	case <-ctx.Done():
		l.quit(key, one)
		return nil, context.Cause(ctx)
	}
}

func (l *keyQueues) quit(key string, one *keyQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.size--; one.size == 0 {
		delete(l.byKey, key)
	}
}
