package proxy_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"redlock-proxy/quorum"
)

// memoryLocks keeps lock keys in this process. They do not expire.
type memoryLocks struct {
	mu          sync.Mutex
	changed     chan struct{} // closed at the next change
	values      map[quorum.Key]lockValue
	waiterCount int
	// beforeLock, if set, runs before each attempt to take a lock.
	beforeLock func(name string)
}

// lockValue is the value of a key.
type lockValue struct {
	value string
	ttl   time.Duration
}

func newMemoryLocks() *memoryLocks {
	return &memoryLocks{changed: make(chan struct{}), values: map[quorum.Key]lockValue{}}
}

// memoryLocker is a locker over memoryLocks.
type memoryLocker struct{ *memoryLocks }

func (l memoryLocker) Lock(ctx context.Context, req quorum.LockRequest) (quorum.GrantedLock, error) {
	if req.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, req.Wait, quorum.ErrHeld)
		defer cancel()
	}
	if l.beforeLock != nil {
		l.beforeLock(req.Keys[0].Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if _, exists := l.values[req.Keys[0]]; !exists {
			l.values[req.Keys[0]] = lockValue{req.Token, req.TTL}
			return quorum.GrantedLock{Validity: req.TTL}, nil
		}
		if req.Wait == 0 {
			return quorum.GrantedLock{}, quorum.ErrHeld
		}
		if err := l.awaitChange(ctx); err != nil {
			return quorum.GrantedLock{}, err
		}
	}
}

func (l memoryLocker) Unlock(ctx context.Context, key quorum.Key, token string) error {
	return l.Release(ctx, key, token)
}

func (memoryLocker) Fence(context.Context, quorum.Key) (int64, error) { return 0, nil }

func (l memoryLocker) AwaitPop(ctx context.Context, a quorum.BlockedPop) error {
	if a.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, a.Wait, quorum.ErrPopTimeout)
		defer cancel()
	}
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if a.Try(slices.Repeat([]bool{true}, len(a.Keys))) == quorum.PopEnded {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (memoryLocker) WaiterCount() int { return 0 }

// awaitChange waits for a change. The caller must hold mu.
func (l *memoryLocks) awaitChange(ctx context.Context) error {
	l.waiterCount++
	defer func() { l.waiterCount-- }()
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

// holder returns the token of a lock's holder; empty if there is none.
func (l *memoryLocks) holder(db int, name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.values[quorum.Key{DB: db, Name: name}].value
}

// waiters returns the number of clients that wait for a lock.
func (l *memoryLocks) waiters() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiterCount
}

func (l *memoryLocks) Read(_ context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshots := make([]quorum.Snapshot, len(keys))
	for i, key := range keys {
		snapshots[i] = l.read(key)
	}
	return snapshots, nil
}

func (l *memoryLocks) Watch(ctx context.Context, keys []quorum.Key) ([]quorum.Snapshot, error) {
	return l.Read(ctx, keys)
}

func (l *memoryLocks) read(key quorum.Key) quorum.Snapshot {
	h, exists := l.values[key]
	if !exists {
		return quorum.Snapshot{}
	}
	return quorum.Snapshot{Present: true, Value: h.value, TimeLeft: h.ttl, Version: h.value}
}

func (l *memoryLocks) Take(_ context.Context, t quorum.TakeRequest) (quorum.GrantedLock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range t.Keys {
		if _, exists := l.values[key]; exists {
			return quorum.GrantedLock{}, quorum.ErrHeld
		}
	}
	for i, key := range t.Keys {
		l.values[key] = lockValue{t.Tokens[i], t.TTL}
	}
	return quorum.GrantedLock{Validity: t.TTL}, nil
}

func (l *memoryLocks) Release(_ context.Context, key quorum.Key, token string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, exists := l.values[key]; !exists || h.value != token {
		return quorum.ErrNotHeld
	}
	l.remove(key)
	return nil
}

// remove removes a key, and notifies waiters. The caller must hold mu.
func (l *memoryLocks) remove(key quorum.Key) {
	delete(l.values, key)
	l.notifyWaiters()
}

// notifyWaiters notifies waiters of a change. The caller must hold mu.
func (l *memoryLocks) notifyWaiters() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *memoryLocks) Withdraw(keys []quorum.Key, _ quorum.GrantedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		l.remove(key)
	}
}

func (l *memoryLocks) Extend(_ context.Context, key quorum.Key, token string, ttl time.Duration) (quorum.GrantedLock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, exists := l.values[key]; !exists || h.value != token {
		return quorum.GrantedLock{}, quorum.ErrNotHeld
	}
	l.values[key] = lockValue{token, ttl}
	return quorum.GrantedLock{Validity: ttl}, nil
}

func (l *memoryLocks) ExtendTogether(_ context.Context, requests []quorum.ExtendRequest) []quorum.GrantedLock {
	return make([]quorum.GrantedLock, len(requests))
}

func (l *memoryLocks) Update(
	_ context.Context, key quorum.Key, _ *string, run func(quorum.Snapshot) (quorum.Decision, error),
) (quorum.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := run(l.read(key))
	if err != nil {
		return quorum.Outcome{}, err
	}
	l.apply(key, d)
	return quorum.Outcome{Decision: d}, nil
}

func (l *memoryLocks) UpdateAll(
	_ context.Context, keys []quorum.Key, _ *string, run func([]quorum.Snapshot) ([]quorum.Decision, error),
) (quorum.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshots := make([]quorum.Snapshot, len(keys))
	for i, key := range keys {
		snapshots[i] = l.read(key)
	}
	decisions, err := run(snapshots)
	if err != nil {
		return quorum.Outcome{}, err
	}
	for i, d := range decisions {
		l.apply(keys[i], d)
	}
	return quorum.Outcome{Decision: decisions[0]}, nil
}

// apply carries out a decision.
func (l *memoryLocks) apply(key quorum.Key, d quorum.Decision) {
	switch {
	case d.Action == quorum.Remove:
		l.remove(key)
	case d.Action == quorum.Put && d.KeepTTL:
		l.values[key] = lockValue{d.Value, l.values[key].ttl}
		l.notifyWaiters()
	case d.Action == quorum.Put:
		l.values[key] = lockValue{d.Value, d.TTL}
		l.notifyWaiters()
	}
}

func (l *memoryLocks) Guess(quorum.Key) (token string, ok bool) { return "", false }

// Names returns all keys of a database in two pages.
func (l *memoryLocks) Names(_ context.Context, db int, page func(names []string) (bool, error)) error {
	l.mu.Lock()
	var names []string
	for key := range l.values {
		if key.DB == db {
			names = append(names, key.Name)
		}
	}
	l.mu.Unlock()
	more, err := page(names[:len(names)/2])
	if more && err == nil {
		_, err = page(names)
	}
	return err
}

func (l *memoryLocks) Databases(context.Context) (databases []int, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.values {
		if !slices.Contains(databases, key.DB) {
			databases = append(databases, key.DB)
		}
	}
	return databases, nil
}

func (l *memoryLocks) Remove(_ context.Context, key quorum.Key) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, exists := l.values[key]
	if exists {
		l.remove(key)
	}
	return exists, nil
}
