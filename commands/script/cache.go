package script

import (
	"sync"

	"redlock-proxy/internal/lru"
)

// Cache keeps the scripts that were used last. It is safe for concurrent use.
type Cache struct {
	bySHA *lru.Cache[*Script]
	// large is held while a long body is compiled, one at a time: that takes a hundred times its size, and a second for a megabyte.
	large sync.Mutex
}

// longBody is how long a body is that is not compiled at once.
const longBody = 32 << 10

// NewCache makes a cache that holds at most so many scripts, and, with what they compile to, so many bytes.
func NewCache(entries, bytes int) *Cache {
	return &Cache{bySHA: lru.Sized(entries, bytes, (*Script).size)}
}

// Load is the script of a body, compiled if the cache does not have it. The error is that of Compile.
func (c *Cache) Load(body string) (*Script, error) {
	sha := SHA(body)
	if s, ok := c.bySHA.Get(sha); ok {
		return s, nil
	}
	if len(body) > longBody {
		c.large.Lock()
		defer c.large.Unlock()
		if s, ok := c.bySHA.Get(sha); ok {
			return s, nil
		}
	}
	s, err := Compile(body)
	if err != nil {
		return nil, err
	}
	return c.bySHA.Add(sha, s), nil // another may have compiled it at the same time
}

// Get is the script of a SHA in lower case, if the cache has it.
func (c *Cache) Get(sha string) (*Script, bool) { return c.bySHA.Get(sha) }

// Flush forgets all scripts.
func (c *Cache) Flush() { c.bySHA.Flush() }
