package register

import (
	"context"
	"sync"
)

// lines let commands that replace the value of one key go one after another in this process:
// they would only take each other's ballots away.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

type line struct {
	turn chan struct{} // holds one token: whose turn it is
	size int
}

// enter waits for the turn. leave gives it up.
func (l *lines) enter(ctx context.Context, key string) (leave func(), err error) {
	l.mu.Lock()
	one := l.byKey[key]
	if one == nil {
		one = &line{turn: make(chan struct{}, 1)}
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

func (l *lines) quit(key string, one *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.size--; one.size == 0 {
		delete(l.byKey, key)
	}
}
