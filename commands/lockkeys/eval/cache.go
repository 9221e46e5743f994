package eval

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/lockkeys/script"
)

// DefaultMemory is how much is kept of scripts in this process, in bytes of what they compile to.
const DefaultMemory = 64 << 20

// Store keeps the bodies of scripts where all proxies find them.
type Store interface {
	// Save stores a body under its SHA-1, in lower-case hexadecimal.
	Save(ctx context.Context, sha, body string) error
	// Find returns the body with that SHA-1; ok is false if it is not there.
	Find(ctx context.Context, sha string) (body string, ok bool, err error)
	// Flush removes all bodies.
	Flush(ctx context.Context) error
}

// NoStore keeps none.
type NoStore struct{}

// Save keeps nothing.
func (NoStore) Save(context.Context, string, string) error { return nil }

// Find finds nothing.
func (NoStore) Find(context.Context, string) (string, bool, error) { return "", false, nil }

// Flush has nothing to remove.
func (NoStore) Flush(context.Context) error { return nil }

// find finds a script by its SHA-1, here or where all proxies keep them; nil
// if nobody knows it.
func (s *Scripts) find(ctx context.Context, sha string, share script.Share) (*script.Script, error) {
	if known, ok := s.cache.Get(sha); ok {
		return known, nil
	}
	body, ok, err := s.opts.Store.Find(ctx, sha)
	if err != nil || !ok {
		return nil, err
	}
	return s.cache.Load(ctx, body, share)
}

// short is for a script that is compiled at once, or not now.
var short = script.Share{Short: true}

// known is a script that is given by its body or its SHA-1, if it compiles, or is known here; sure
// is false where that must be learned.
func (s *Scripts) known(name string, given []byte) (found *script.Script, sure bool) {
	if syntax.BySHA(name) {
		found, sure = s.cache.Get(syntax.Lower(given))
		return found, sure
	}
	found, err := s.cache.Load(context.Background(), string(given), short)
	return found, err == nil || errors.As(err, new(*script.MistakeError))
}

// Knows reports whether a script is known here, by its SHA-1.
func (s *Scripts) Knows(sha []byte) bool {
	_, known := s.cache.Get(syntax.Lower(sha))
	return known
}

// Cached counts the scripts that are known here.
func (s *Scripts) Cached() int { return s.cache.Len() }

// SetMemory bounds how many bytes are kept of scripts.
func (s *Scripts) SetMemory(bytes int) { s.cache.Limit(bytes) }

// Memory returns how many bytes are kept of scripts.
func (s *Scripts) Memory() int { return s.cache.Held() }

// Loaded takes a script that the upstream has learned, if it is a short one; else it is learned
// when it is sent again.
func (s *Scripts) Loaded(body []byte) { _, _ = s.cache.Load(context.Background(), string(body), short) }
