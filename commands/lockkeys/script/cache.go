package script

import (
	"context"

	"redlock-proxy/internal/lru"
)

// Cache keeps the most recently used scripts. It is safe for concurrent use.
type Cache struct{ bySHA *lru.Cache[*Script] }

// NewCache returns a cache with a limit on the bytes of its scripts, including their compiled form.
func NewCache(bytes int) *Cache { return &Cache{lru.NewSized(bytes, (*Script).size)} }

// Limit changes the limit, in bytes.
func (c *Cache) Limit(bytes int) { c.bySHA.SetLimit(bytes) }

// Bytes returns the bytes of the scripts.
func (c *Cache) Bytes() int { return c.bySHA.Size() }

// Load returns the script with a body, and compiles a script that the cache does not have. The
// errors are those of Compile.
func (c *Cache) Load(ctx context.Context, body string, share Share) (*Script, error) {
	sha := SHA(body)
	if s, ok := c.bySHA.Get(sha); ok {
		return s, nil
	}
	s, err := Compile(ctx, body, share)
	if err != nil {
		return nil, err
	}
	// Another goroutine may have compiled the script at the same time.
	return c.bySHA.Add(sha, s), nil
}

// Get returns the script with a SHA-1 in lower case, if the cache has it.
func (c *Cache) Get(sha string) (*Script, bool) { return c.bySHA.Get(sha) }

// Len returns the number of scripts.
func (c *Cache) Len() int { return c.bySHA.Len() }

// Flush removes all scripts.
func (c *Cache) Flush() { c.bySHA.Flush() }
