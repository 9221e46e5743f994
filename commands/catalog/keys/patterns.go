package keys

import (
	"slices"
	"strings"
)

// Patterns holds compiled globs, usually of the lock keys. The zero value matches no key.
type Patterns struct{ globs []glob }

// glob holds a pattern, split into its literal prefix and the rest.
type glob struct{ prefix, rest string }

// NewPatterns compiles globs of the syntax of KEYS.
func NewPatterns(patterns ...string) Patterns {
	var l Patterns
	for _, p := range patterns {
		prefix := Prefix(p)
		l.globs = append(l.globs, glob{prefix, p[len(prefix):]})
	}
	return l
}

// Prefix returns the literal prefix of a glob.
func Prefix(glob string) string {
	if end := strings.IndexAny(glob, `*?[\`); end >= 0 {
		return glob[:end]
	}
	return glob
}

// HasPatterns reports whether there is a pattern.
func (l Patterns) HasPatterns() bool { return len(l.globs) > 0 }

// Match reports whether a key is a lock key. It allocates nothing, and decides about most keys by
// their first bytes.
func (l Patterns) Match(key []byte) bool {
	for _, g := range l.globs {
		if len(key) >= len(g.prefix) && string(key[:len(g.prefix)]) == g.prefix && matchRest(g.rest, key[len(g.prefix):]) {
			return true
		}
	}
	return false
}

// MayMatch reports whether a key that begins with these bytes may be a lock key. It is for keys
// that are too long to be held in memory.
func (l Patterns) MayMatch(prefix []byte) bool {
	for _, g := range l.globs {
		n := min(len(prefix), len(g.prefix))
		if string(prefix[:n]) == g.prefix[:n] && (g.rest != "" || len(prefix) <= len(g.prefix)) {
			return true
		}
	}
	return false
}

// Covers reports whether every key that matches a glob is a lock key. It returns false if the globs
// of the lock keys do not clearly include that glob.
func (l Patterns) Covers(match string) bool {
	end := strings.IndexAny(match, `*?[\`)
	if end < 0 {
		return l.Match([]byte(match))
	}
	return slices.ContainsFunc(l.globs, func(g glob) bool {
		return g.rest == "*" && strings.HasPrefix(match[:end], g.prefix) || g.prefix+g.rest == match
	})
}

// matchRest matches the rest of a key with the rest of a glob, after the literal prefix.
func matchRest[S ~string | ~[]byte](pattern string, rest S) bool {
	switch pattern {
	case "":
		return len(rest) == 0
	case "*":
		return true
	}
	return Match(pattern, rest)
}

// Split returns the indexes of the first lock key and of the first other key among the words at
// these places. An index is -1 if there is no such key.
func (l Patterns) Split(words [][]byte, places Places) (lockIndex, otherIndex int) {
	lockIndex, otherIndex = -1, -1
	for i := range places.All() {
		switch {
		case i >= len(words):
			return lockIndex, otherIndex
		case l.Match(words[i]):
			if lockIndex < 0 {
				lockIndex = i
			}
		case otherIndex < 0:
			otherIndex = i
		}
	}
	return lockIndex, otherIndex
}
