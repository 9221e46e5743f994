package queue

import (
	"container/list"
	"sync"
)

// Lines are the queues of those who wait until something is put under a key, first come, first
// served: who waits for several keys stands in the queue of each. The zero value is empty, and safe
// for concurrent use.
type Lines[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*list.List
	count int
}

// member is one who waits, in all its queues.
type member[K comparable] struct {
	keys   []K
	places []*list.Element
	// bell holds one signal: it is the head of another queue, or there is something new of a key.
	bell chan struct{}
	// waits is set once it has tried in vain.
	waits bool
}

func (m *member[K]) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// Len is how many wait, that is, have tried in vain.
func (l *Lines[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// enter takes the last place in the queue of each of the keys, which are distinct.
func (l *Lines[K]) enter(keys []K) *member[K] {
	m := &member[K]{keys: keys, bell: make(chan struct{}, 1)}
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

// wait is for when it has tried in vain for the first time.
func (l *Lines[K]) wait(m *member[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.waits = true
	l.count++
}

// heads tells of each of its keys whether it is the head of that queue. It stays so until it
// leaves.
func (l *Lines[K]) heads(m *member[K]) []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads := make([]bool, len(m.keys))
	for i, key := range m.keys {
		heads[i] = l.byKey[key].Front() == m.places[i]
	}
	return heads
}

// leave gives its places up, and tells those who are heads now.
func (l *Lines[K]) leave(m *member[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.waits {
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
			next.Value.(*member[K]).ring()
		}
	}
}
