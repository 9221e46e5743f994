package lockdetect

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxHeads bounds the beginnings of keys that are told apart.
	maxHeads = 32
	// maxPatterns bounds the patterns that are told apart with one beginning. Further keys
	// count for the beginning and *.
	maxPatterns = 8
)

// Notices count and log what was seen. They are for any number of goroutines.
type Notices struct {
	log     *slog.Logger
	scripts scripts

	locks, releases atomic.Int64

	mu    sync.Mutex
	heads map[string]map[string]*Pattern // by beginning, then by glob
	// full: it was logged that further patterns are not.
	full bool
}

// Pattern is a kind of keys that are used like locks.
type Pattern struct {
	// Glob matches them, and can be one of the lock-keys as it is.
	Glob string
	// Locks is how often one was taken, by a SET with NX and a time, and Releases how often
	// one was compared and deleted, since the proxy started.
	Locks, Releases int64
}

// New makes notices that log each pattern once.
func New(log *slog.Logger) *Notices {
	return &Notices{log: log, heads: map[string]map[string]*Pattern{}}
}

// CountUncovered takes the first [Words] words of a command that goes to the upstream. covered
// reports whether a key is a lock key.
func (n *Notices) CountUncovered(words [][]byte, covered func(key []byte) bool) {
	what, key := n.judge(words)
	if what != other && !covered(key) {
		n.count(what, key)
	}
}

// judge says what a command does to which key.
func (n *Notices) judge(words [][]byte) (what use, key []byte) {
	if len(words) < 3 {
		return other, nil
	}
	switch name := words[0]; {
	case is(name, "set") && takesLock(words[3:]):
		return takes, words[1]
	case is(name, "msetex") && takesLock(optionsOfMsetex(words)):
		return takes, words[2]
	case is(name, "delifeq"), is(name, "delex") && len(words) > 3 && (is(words[2], "ifeq") || is(words[2], "ifdeq")):
		return releases, words[1]
	case is(name, "script") && is(words[1], "load"):
		n.scripts.releases(words[2]) // which remembers it: it may be called by its SHA-1 later
	case is(name, "eval") && n.scripts.releases(words[1]), is(name, "evalsha") && n.scripts.isRelease(words[1]):
		if key, ok := firstKey(words); ok {
			return releases, key
		}
	}
	return other, nil
}

func (n *Notices) count(what use, key []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.find(what, key)
	if what == takes {
		n.locks.Add(1)
		p.Locks++
		return
	}
	n.releases.Add(1)
	p.Releases++
}

// find gives the pattern of a key, and logs a new one.
func (n *Notices) find(what use, key []byte) *Pattern {
	glob, head := pattern(key)
	globs := n.heads[head]
	switch {
	case globs == nil && len(n.heads) == maxHeads:
		n.tellFull()
		return new(Pattern)
	case globs == nil:
		globs = map[string]*Pattern{}
		n.heads[head] = globs
	case globs[glob] == nil && len(globs) >= maxPatterns:
		glob = widest(head)
	}
	p := globs[glob]
	if p == nil {
		p = &Pattern{Glob: glob}
		globs[glob] = p
		n.log.Warn("a key that lock-keys does not cover is used like a lock: the upstream alone holds it",
			"pattern", glob, "by", what.String())
	}
	return p
}

// widest is the glob of all keys with a beginning.
func widest(head string) string {
	if head[len(head)-1] == '*' {
		return head
	}
	return starred(head)
}

func (n *Notices) tellFull() {
	if !n.full {
		n.full = true
		n.log.Warn("more keys are used like locks than are kept apart here: PROXY INFO counts the rest together")
	}
}

// String is what the log says.
func (u use) String() string {
	if u == takes {
		return "SET NX with a time"
	}
	return "compare and delete"
}

// Counts are how many locks were taken and released on keys that are no lock keys.
func (n *Notices) Counts() (locks, releases int64) { return n.locks.Load(), n.releases.Load() }

// Patterns are those that were told apart, the one with the most locks first.
func (n *Notices) Patterns() []Pattern {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Pattern
	for _, globs := range n.heads {
		for _, p := range globs {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(b.Locks+b.Releases, a.Locks+a.Releases), cmp.Compare(a.Glob, b.Glob))
	})
	return all
}
