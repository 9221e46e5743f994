package commands

import "strings"

// LockKeys are the glob patterns of the keys that stand on the lock masters,
// compiled. The zero value matches none.
type LockKeys struct{ globs []keyGlob }

// keyGlob is a pattern in two parts: what every key begins with, as it is, and a
// pattern for the rest.
type keyGlob struct{ prefix, rest string }

// NewLockKeys compiles patterns as in KEYS.
func NewLockKeys(patterns ...string) LockKeys {
	var l LockKeys
	for _, p := range patterns {
		plain := strings.IndexAny(p, `*?[\`)
		if plain < 0 {
			plain = len(p)
		}
		l.globs = append(l.globs, keyGlob{p[:plain], p[plain:]})
	}
	return l
}

// Any reports whether there is a pattern at all.
func (l LockKeys) Any() bool { return len(l.globs) > 0 }

// Match reports whether a key is a lock key. It allocates nothing, and most keys
// are told by their first bytes.
func (l LockKeys) Match(key []byte) bool {
	for _, g := range l.globs {
		if len(key) >= len(g.prefix) && string(key[:len(g.prefix)]) == g.prefix && g.matchRest(key[len(g.prefix):]) {
			return true
		}
	}
	return false
}

func (g keyGlob) matchRest(rest []byte) bool {
	switch g.rest {
	case "":
		return len(rest) == 0
	case "*":
		return true
	}
	return matchGlob(g.rest, rest)
}
