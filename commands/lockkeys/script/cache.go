package script

import (
	"context"

	"redlock-proxy/internal/lru"
)

// Cache keeps the scripts that were used last. It is safe for concurrent use.
type Cache struct{ bySHA *lru.Cache[*Script] }

// NewCache makes a cache of scripts that take no more than so many bytes, with what they compile
// to.
func NewCache(bytes int) *Cache { return &Cache{lru.Sized(bytes, (*Script).size)} }

// Limit has another limit hold.
func (c *Cache) Limit(bytes int) { c.bySHA.Limit(bytes) }

// Held returns how many bytes the scripts take.
func (c *Cache) Held() int { return c.bySHA.Held() }

// Load is the script of a body, compiled if the cache does not have it. The error is that of
// Compile.
func (c *Cache) Load(ctx context.Context, body string, share Share) (*Script, error) {
	sha := SHA(body)
	if s, ok := c.bySHA.Get(sha); ok {
		return s, nil
	}
	s, err := Compile(ctx, body, share)
	if err != nil {
		return nil, err
	}
	return c.bySHA.Add(sha, s), nil // another may have compiled it at the same time
}

// Get is the script of a SHA in lower case, if the cache has it.
func (c *Cache) Get(sha string) (*Script, bool) { return c.bySHA.Get(sha) }

// Len counts the scripts.
func (c *Cache) Len() int { return c.bySHA.Len() }

// Flush forgets all scripts.
func (c *Cache) Flush() { c.bySHA.Flush() }
