package proxy_test

import (
	"context"
	"sync"
	"time"

	"redlock-proxy/quorum"
)

// memoryLocks are locks in this process. They do not expire.
type memoryLocks struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	held    map[quorum.Key]string
	left    map[quorum.Key]time.Duration
	waiting int
}

func newMemoryLocks() *memoryLocks {
	return &memoryLocks{changed: make(chan struct{}), held: map[quorum.Key]string{}, left: map[quorum.Key]time.Duration{}}
}

func (l *memoryLocks) Lock(ctx context.Context, req quorum.LockRequest) (time.Duration, error) {
	if req.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Wait, quorum.ErrHeld)
		defer cancel()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.held[req.Key] != "" {
		if req.Wait == 0 {
			return 0, quorum.ErrHeld
		}
		if err := l.await(ctx); err != nil {
			return 0, err
		}
	}
	l.held[req.Key], l.left[req.Key] = req.Token, req.TTL
	return req.TTL, nil
}

// await waits for a change. It is called with mu held.
func (l *memoryLocks) await(ctx context.Context) error {
	l.waiting++
	defer func() { l.waiting-- }()
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *memoryLocks) Unlock(_ context.Context, key quorum.Key, token string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] != token {
		return quorum.ErrNotHeld
	}
	delete(l.held, key)
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

func (l *memoryLocks) Extend(_ context.Context, key quorum.Key, token string, ttl time.Duration) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] != token {
		return 0, quorum.ErrNotHeld
	}
	return ttl, nil
}

// holder is the token that holds a lock, or "".
func (l *memoryLocks) holder(db int, name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[quorum.Key{DB: db, Name: name}]
}

// waiters counts those who wait for a lock.
func (l *memoryLocks) waiters() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

// ReadAll tells what stands under the keys.
func (l *memoryLocks) ReadAll(_ context.Context, keys []quorum.Key) ([]quorum.Holding, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holdings(keys), nil
}

func (l *memoryLocks) holdings(keys []quorum.Key) []quorum.Holding {
	all := make([]quorum.Holding, len(keys))
	for i, key := range keys {
		value, held := l.held[key]
		all[i] = quorum.Holding{Held: held, Free: !held, Value: value, Left: l.left[key]}
	}
	return all
}

// Turn is everybody's: each change is made at once.
func (l *memoryLocks) Turn(context.Context, quorum.Key) (end func(), ok bool) { return func() {}, true }

// Apply makes the edits if what they expect is there.
func (l *memoryLocks) Apply(_ context.Context, edits []quorum.Edit) (quorum.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := make([]quorum.Key, len(edits))
	fits := true
	for i, e := range edits {
		value, held := l.held[e.Key]
		keys[i], fits = e.Key, fits && held == e.Was.Present && (!held || value == e.Was.Value)
	}
	if !fits {
		return quorum.Outcome{Found: l.holdings(keys)}, nil
	}
	for _, e := range edits {
		l.put(e)
	}
	return quorum.Outcome{Applied: true, Validity: quorum.Endless}, nil
}

func (l *memoryLocks) put(e quorum.Edit) {
	if !e.Now.Present {
		delete(l.held, e.Key)
		delete(l.left, e.Key)
		return
	}
	l.held[e.Key] = e.Now.Value
	if !e.KeepLeft {
		l.left[e.Key] = e.Now.Left
	}
}
