// Package lru implements a cache that evicts the least recently used values.
package lru

import (
	"container/list"
	"sync"
)

// Cache holds values by key, up to a limit. Beyond the limit it evicts the least recently used
// value. It is safe for concurrent use.
type Cache[V any] struct {
	size func(V) int

	mu              sync.Mutex
	byKey           map[string]*list.Element // each element holds an entry[V]
	byUse           list.List                // the most recently used first
	usedSize, limit int                      // in units of size
}

type entry[V any] struct {
	key   string
	value V
}

// New returns a cache of at most the given number of values.
func New[V any](maxEntries int) *Cache[V] { return NewSized(maxEntries, func(V) int { return 1 }) }

// NewSized returns a cache of values whose sizes add up to at most the limit. It does not keep a
// value that alone exceeds the limit.
func NewSized[V any](limit int, size func(V) int) *Cache[V] {
	return &Cache[V]{limit: limit, size: size, byKey: map[string]*list.Element{}}
}

// SetLimit changes the limit, and evicts values if needed.
func (c *Cache[V]) SetLimit(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = limit
	c.evict()
}

// Size returns the sum of the sizes of all values.
func (c *Cache[V]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usedSize
}

// Get returns the value of a key, if the cache has it.
func (c *Cache[V]) Get(key string) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.byUse.MoveToFront(e)
	return e.Value.(entry[V]).value, true
}

// Len returns the number of values.
func (c *Cache[V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey)
}

// Add adds a value unless the key has one already, and returns the key's value. Add returns a value
// that is too large for the cache, but does not keep it.
func (c *Cache[V]) Add(key string, value V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		return e.Value.(entry[V]).value
	}
	c.put(key, value)
	return value
}

// Set sets the value of a key. Replacing a value does not count as a use of it.
func (c *Cache[V]) Set(key string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.usedSize += c.size(value) - c.size(e.Value.(entry[V]).value)
		e.Value = entry[V]{key, value}
		c.evict()
		return
	}
	c.put(key, value)
}

func (c *Cache[V]) put(key string, value V) {
	if c.size(value) > c.limit {
		return // the value would evict all other values
	}
	c.byKey[key] = c.byUse.PushFront(entry[V]{key, value})
	c.usedSize += c.size(value)
	c.evict()
}

func (c *Cache[V]) evict() {
	for c.byUse.Len() > 0 && c.usedSize > c.limit {
		oldest := c.byUse.Remove(c.byUse.Back()).(entry[V])
		delete(c.byKey, oldest.key)
		c.usedSize -= c.size(oldest.value)
	}
}

// Flush removes all values.
func (c *Cache[V]) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byKey, c.usedSize = map[string]*list.Element{}, 0
	c.byUse.Init()
}
