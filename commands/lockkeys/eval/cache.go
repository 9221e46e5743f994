package eval

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
)

// DefaultMemory is the limit on the bytes of the cached scripts, including their compiled form,
// until a call of SetMemory.
const DefaultMemory = 64 << 20

// Store keeps the bodies of scripts for all proxies.
type Store interface {
	// Save stores a body under its SHA-1, in lower-case hexadecimal.
	Save(ctx context.Context, sha, body string) error
	// Find returns the body with a SHA-1. ok is false if the Store does not have this body.
	Find(ctx context.Context, sha string) (body string, ok bool, err error)
	// Flush removes all bodies.
	Flush(ctx context.Context) error
}

// NoStore is a Store that keeps no bodies.
type NoStore struct{}

// Save implements Store. It keeps nothing.
func (NoStore) Save(context.Context, string, string) error { return nil }

// Find implements Store. It finds nothing.
func (NoStore) Find(context.Context, string) (string, bool, error) { return "", false, nil }

// Flush implements Store. It does nothing.
func (NoStore) Flush(context.Context) error { return nil }

// find returns the script with a SHA-1 from the cache or from the store, or nil if neither has it.
func (s *Scripts) find(ctx context.Context, sha string, share script.Share) (*script.Script, error) {
	if cached, ok := s.cache.Get(sha); ok {
		return cached, nil
	}
	body, ok, err := s.opts.Store.Find(ctx, sha)
	if err != nil || !ok {
		return nil, err
	}
	return s.cache.Load(ctx, body, share)
}

// shortShare allows only a short compilation, like that of a lock script.
var shortShare = script.Share{Short: true}

// cachedScript returns a script without asking the store. It returns nil if the script does not
// compile. resolved is false if the proxy must find or compile the script first.
func (s *Scripts) cachedScript(name string, bodyOrSHA []byte) (cached *script.Script, resolved bool) {
	if syntax.TakesSHA(name) {
		cached, resolved = s.cache.Get(syntax.Lower(bodyOrSHA))
		return cached, resolved
	}
	cached, err := s.cache.Load(context.Background(), string(bodyOrSHA), shortShare)
	return cached, err == nil || errors.As(err, new(*script.CompileError))
}

// Knows reports whether the cache has a script with this SHA-1.
func (s *Scripts) Knows(sha []byte) bool {
	_, ok := s.cache.Get(syntax.Lower(sha))
	return ok
}

// CachedCount returns the number of scripts in the cache.
func (s *Scripts) CachedCount() int { return s.cache.Len() }

// SetMemory limits the bytes of the scripts in the cache.
func (s *Scripts) SetMemory(bytes int) { s.cache.Limit(bytes) }

// Memory returns the bytes of the scripts in the cache.
func (s *Scripts) Memory() int { return s.cache.Bytes() }

// CacheLoadedScript caches a script that a client has loaded at the upstream, if the script
// compiles quickly. The proxy caches a slower script when a client sends it again.
func (s *Scripts) CacheLoadedScript(body []byte) {
	_, _ = s.cache.Load(context.Background(), string(body), shortShare)
}
