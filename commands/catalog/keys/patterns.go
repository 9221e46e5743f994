package keys

import (
	"slices"
	"strings"
)

// Patterns are the globs of the keys that stand on the lock masters, compiled. The zero value
// matches none.
type Patterns struct{ globs []glob }

// glob is a pattern in two parts: what every key begins with, as it is, and a
// pattern for the rest.
type glob struct{ prefix, rest string }

// NewPatterns compiles globs as in KEYS.
func NewPatterns(patterns ...string) Patterns {
	var l Patterns
	for _, p := range patterns {
		prefix := Prefix(p)
		l.globs = append(l.globs, glob{prefix, p[len(prefix):]})
	}
	return l
}

// Prefix is what every key begins with that matches a glob.
func Prefix(glob string) string {
	if plain := strings.IndexAny(glob, `*?[\`); plain >= 0 {
		return glob[:plain]
	}
	return glob
}

// Any reports whether there is a pattern at all.
func (l Patterns) Any() bool { return len(l.globs) > 0 }

// Match reports whether a key is a lock key. It allocates nothing, and most keys
// are told by their first bytes.
func (l Patterns) Match(key []byte) bool {
	for _, g := range l.globs {
		if len(key) >= len(g.prefix) && string(key[:len(g.prefix)]) == g.prefix && g.matchRest(key[len(g.prefix):]) {
			return true
		}
	}
	return false
}

// MayMatch reports whether a key that begins so can be a lock key. It is for keys that are too long
// to be held.
func (l Patterns) MayMatch(begin []byte) bool {
	for _, g := range l.globs {
		n := min(len(begin), len(g.prefix))
		if string(begin[:n]) == g.prefix[:n] && (g.rest != "" || len(begin) <= len(g.prefix)) {
			return true
		}
	}
	return false
}

// Cover reports whether every key that matches a glob is known to be a lock key.
func (l Patterns) Cover(match string) bool {
	plain := strings.IndexAny(match, `*?[\`)
	if plain < 0 {
		return l.Match([]byte(match))
	}
	return slices.ContainsFunc(l.globs, func(g glob) bool {
		return g.rest == "*" && strings.HasPrefix(match[:plain], g.prefix) || g.prefix+g.rest == match
	})
}

func (g glob) matchRest(rest []byte) bool {
	switch g.rest {
	case "":
		return len(rest) == 0
	case "*":
		return true
	}
	return Match(g.rest, rest)
}

// Split finds the first lock key among the words in these places, and the first other key; -1
// where there is none.
func (l Patterns) Split(words [][]byte, places Places) (lock, other int) {
	lock, other = -1, -1
	for i := range places.All() {
		switch {
		case i >= len(words):
			return lock, other
		case l.Match(words[i]):
			if lock < 0 {
				lock = i
			}
		case other < 0:
			other = i
		}
	}
	return lock, other
}
