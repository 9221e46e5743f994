// Package lru keeps what was used last.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps values by key, as many as it is allowed to. It is safe for concurrent use.
type Cache[V any] struct {
	size func(V) int

	mu          sync.Mutex
	byKey       map[string]*list.Element // of entry[V]
	recent      list.List                // the last used first
	held, limit int                      // in sizes
}

type entry[V any] struct {
	key   string
	value V
}

// New makes a cache of at most so many values.
func New[V any](entries int) *Cache[V] { return Sized(entries, func(V) int { return 1 }) }

// Sized makes a cache of values whose sizes come to no more than a limit, but for the newest one.
func Sized[V any](limit int, size func(V) int) *Cache[V] {
	return &Cache[V]{limit: limit, size: size, byKey: map[string]*list.Element{}}
}

// Limit has another limit hold.
func (c *Cache[V]) Limit(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	c.evict()
}

// Held returns what the sizes come to.
func (c *Cache[V]) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// Get is the value of a key, if the cache has it.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(entry[V]).value, true
}

// Len counts the values.
func (c *Cache[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey)
}

// Add adds a value, unless there is one under its key, and gives the one that is there now.
func (c *Cache[V]) Add(key string, value V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		return e.Value.(entry[V]).value
	}
	c.put(key, value)
	return value
}

// Set puts a value under its key. To replace one is no use of it.
func (c *Cache[V]) Set(key string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.held += c.size(value) - c.size(e.Value.(entry[V]).value)
		e.Value = entry[V]{key, value}
		return
	}
	c.put(key, value)
}

func (c *Cache[V]) put(key string, value V) {
	c.byKey[key] = c.recent.PushFront(entry[V]{key, value})
	c.held += c.size(value)
	c.evict()
}

func (c *Cache[V]) evict() {
	for c.recent.Len() > 1 && c.held > c.limit {
		oldest := c.recent.Remove(c.recent.Back()).(entry[V])
		delete(c.byKey, oldest.key)
		c.held -= c.size(oldest.value)
	}
}

// Flush forgets all values.
func (c *Cache[V]) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey, c.held = map[string]*list.Element{}, 0
	c.recent.Init()
}
