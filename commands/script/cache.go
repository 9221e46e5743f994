package script

import (
	"container/list"
	"sync"
)

// Cache keeps the scripts that were used last. It is safe for concurrent use.
type Cache struct {
	entries, bytes int

	mu     sync.Mutex
	bySHA  map[string]*list.Element // of *Script
	recent *list.List               // the last used first
	held   int                      // bytes of bodies
}

// NewCache makes a cache that holds at most so many scripts, and bodies of at most so many bytes together.
func NewCache(entries, bytes int) *Cache {
	return &Cache{entries: entries, bytes: bytes, bySHA: map[string]*list.Element{}, recent: list.New()}
}

// Load is the script of a body, compiled if the cache does not have it. The error is that of Compile.
func (c *Cache) Load(body string) (*Script, error) {
	sha := SHA(body)
	if s, ok := c.Get(sha); ok {
		return s, nil
	}
	s, err := Compile(body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.bySHA[sha]; ok { // compiled by another at the same time
		return known.Value.(*Script), nil
	}
	c.bySHA[sha] = c.recent.PushFront(s)
	c.held += len(body)
	c.evict()
	return s, nil
}

// evict drops what was not used for longest, but not the newest, while there is too much.
func (c *Cache) evict() {
	for c.recent.Len() > 1 && (c.recent.Len() > c.entries || c.held > c.bytes) {
		s := c.recent.Remove(c.recent.Back()).(*Script)
		delete(c.bySHA, s.sha)
		c.held -= len(s.body)
	}
}

// Get is the script of a SHA in lower case, if the cache has it.
func (c *Cache) Get(sha string) (*Script, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.bySHA[sha]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*Script), true
}

// Flush forgets all scripts.
func (c *Cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bySHA, c.held = map[string]*list.Element{}, 0
	c.recent.Init()
}

// Len is the number of scripts.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len()
}
