package lockdetect

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxPrefixes limits the prefixes of keys that a Detector distinguishes.
	maxPrefixes = 32
	// maxPatterns limits the patterns that a Detector distinguishes for one prefix. Further keys
	// count for the pattern of the prefix followed by *.
	maxPatterns = 8
)

// Detector counts and logs commands that look like locks. It is safe for concurrent use.
type Detector struct {
	log     *slog.Logger
	scripts scripts

	locks, releases atomic.Int64

	mu       sync.Mutex
	prefixes map[string]map[string]*Pattern // by prefix, then by glob
	// fullLogged is set once the limit on prefixes is in the log.
	fullLogged bool
}

// Pattern describes a group of keys that clients use like locks.
type Pattern struct {
	// Glob matches the keys. It is a valid value of lock-keys.
	Glob string
	// Locks counts how often a client set a key with NX and an expiry, since the proxy started.
	// Releases counts how often a client compared and deleted a key.
	Locks, Releases int64
}

// New returns a Detector that logs each pattern once.
func New(log *slog.Logger) *Detector {
	return &Detector{log: log, prefixes: map[string]map[string]*Pattern{}}
}

// Count inspects the first [MaxWords] words of a command. isLockKey reports whether a key is a lock
// key.
func (n *Detector) Count(words [][]byte, isLockKey func(key []byte) bool) {
	usage, key := n.classify(words)
	if usage != noLock && !isLockKey(key) {
		n.count(usage, key)
	}
}

// classify returns how a command uses a key, and that key.
func (n *Detector) classify(words [][]byte) (usage keyUse, key []byte) {
	if len(words) < 3 {
		return noLock, nil
	}
	switch name := words[0]; {
	case equalFold(name, "set") && takesLock(words[3:]):
		return acquisition, words[1]
	case equalFold(name, "msetex") && takesLock(optionsOfMsetex(words)):
		return acquisition, words[2]
	case equalFold(name, "delifeq"),
		equalFold(name, "delex") && len(words) > 3 && (equalFold(words[2], "ifeq") || equalFold(words[2], "ifdeq")):
		return release, words[1]
	case equalFold(name, "script") && equalFold(words[1], "load"):
		n.scripts.isReleaseBody(words[2]) // remembers the script for an EVALSHA
	case equalFold(name, "eval") && n.scripts.isReleaseBody(words[1]),
		equalFold(name, "evalsha") && n.scripts.isReleaseDigest(words[1]):
		if key, ok := firstKey(words); ok {
			return release, key
		}
	}
	return noLock, nil
}

func (n *Detector) count(usage keyUse, key []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.find(usage, key)
	if usage == acquisition {
		n.locks.Add(1)
		p.Locks++
		return
	}
	n.releases.Add(1)
	p.Releases++
}

// find returns the pattern of a key, and logs it if it is new.
func (n *Detector) find(usage keyUse, key []byte) *Pattern {
	glob, prefix := pattern(key)
	globs := n.prefixes[prefix]
	switch {
	case globs == nil && len(n.prefixes) == maxPrefixes:
		n.logFull()
		return new(Pattern)
	case globs == nil:
		globs = map[string]*Pattern{}
		n.prefixes[prefix] = globs
	case globs[glob] == nil && len(globs) >= maxPatterns:
		glob = widestGlob(prefix)
	}
	p := globs[glob]
	if p == nil {
		p = &Pattern{Glob: glob}
		globs[glob] = p
		n.log.Warn("a key that lock-keys does not cover is used like a lock: only the upstream holds it",
			"pattern", glob, "by", usage.String())
	}
	return p
}

// widestGlob returns the glob of all keys with a prefix.
func widestGlob(prefix string) string {
	if prefix[len(prefix)-1] == '*' {
		return prefix
	}
	return appendStar(prefix)
}

func (n *Detector) logFull() {
	if !n.fullLogged {
		n.fullLogged = true
		n.log.Warn("too many different keys are used like locks: PROXY INFO shows only the total for further keys")
	}
}

// String describes the use for the log.
func (u keyUse) String() string {
	if u == acquisition {
		return "SET NX with an expiry"
	}
	return "compare and delete"
}

// Counts returns the numbers of locks taken and released on keys that are not lock keys.
func (n *Detector) Counts() (locks, releases int64) { return n.locks.Load(), n.releases.Load() }

// Patterns returns the patterns, the most used pattern first.
func (n *Detector) Patterns() []Pattern {
	n.mu.Lock()
	defer n.mu.Unlock()
	var patterns []Pattern
	for _, globs := range n.prefixes {
		for _, p := range globs {
			patterns = append(patterns, *p)
		}
	}
	slices.SortFunc(patterns, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(b.Locks+b.Releases, a.Locks+a.Releases), cmp.Compare(a.Glob, b.Glob))
	})
	return patterns
}
