package queue

import (
	"container/list"
	"sync"
)

// ValueQueues holds the queues of the waiters for values under keys, first come, first served. A
// waiter for several keys is in the queue of each. The zero value is empty. It is safe for
// concurrent use.
type ValueQueues[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*list.List
	count int
}

// waiter is a client that waits in the queue of each of its keys.
type waiter[K comparable] struct {
	keys   []K
	places []*list.Element
	// bell holds one signal: the waiter has become the head of another queue, or a key has changed.
	bell chan struct{}
	// waiting is set after an unsuccessful try.
	waiting bool
}

func (m *waiter[K]) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// Len returns the number of waiters whose first try was unsuccessful.
func (l *ValueQueues[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// enter adds a waiter to the queue of each key. The keys are distinct.
func (l *ValueQueues[K]) enter(keys []K) *waiter[K] {
	m := &waiter[K]{keys: keys, bell: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[K]*list.List{}
	}
	for _, key := range keys {
		line := l.byKey[key]
		if line == nil {
			line = list.New()
			l.byKey[key] = line
		}
		m.places = append(m.places, line.PushBack(m))
	}
	return m
}

// startWaiting records that the first try was unsuccessful.
func (l *ValueQueues[K]) startWaiting(m *waiter[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.waiting = true
	l.count++
}

// heads reports for each key of a waiter whether it is the head of the queue, which it stays until
// it leaves.
func (l *ValueQueues[K]) heads(m *waiter[K]) []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads := make([]bool, len(m.keys))
	for i, key := range m.keys {
		heads[i] = l.byKey[key].Front() == m.places[i]
	}
	return heads
}

// leave removes a waiter from its queues and notifies the new heads.
func (l *ValueQueues[K]) leave(m *waiter[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.waiting {
		l.count--
	}
	for i, key := range m.keys {
		line := l.byKey[key]
		wasHead := line.Front() == m.places[i]
		line.Remove(m.places[i])
		switch next := line.Front(); {
		case next == nil:
			delete(l.byKey, key)
		case wasHead:
			next.Value.(*waiter[K]).ring()
		}
	}
}
