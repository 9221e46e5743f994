package queue

import (
	"container/list"
	"sync"
)

// ValueQueues holds the queues of the waiters for values under keys, first come, first served. A
// waiter for several keys is in the queue of each key. The zero value is empty. ValueQueues is safe
// for concurrent use.
type ValueQueues[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*list.List
	count int
}

// waiter is a client that waits in the queue of each of its keys.
type waiter[K comparable] struct {
	keys     []K
	elements []*list.Element
	// wakeup receives a signal when the waiter becomes the head of another queue, or a key changes.
	// It has room for one signal.
	wakeup chan struct{}
	// waiting is set after an unsuccessful try.
	waiting bool
}

func (m *waiter[K]) wake() {
	select {
	case m.wakeup <- struct{}{}:
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
	m := &waiter[K]{keys: keys, wakeup: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[K]*list.List{}
	}
	for _, key := range keys {
		keyQueue := l.byKey[key]
		if keyQueue == nil {
			keyQueue = list.New()
			l.byKey[key] = keyQueue
		}
		m.elements = append(m.elements, keyQueue.PushBack(m))
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

// heads reports for each key of a waiter whether the waiter is the head of the key's queue. A head
// stays the head until it leaves.
func (l *ValueQueues[K]) heads(m *waiter[K]) []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads := make([]bool, len(m.keys))
	for i, key := range m.keys {
		heads[i] = l.byKey[key].Front() == m.elements[i]
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
		keyQueue := l.byKey[key]
		wasHead := keyQueue.Front() == m.elements[i]
		keyQueue.Remove(m.elements[i])
		switch next := keyQueue.Front(); {
		case next == nil:
			delete(l.byKey, key)
		case wasHead:
			next.Value.(*waiter[K]).wake()
		}
	}
}
