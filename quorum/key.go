package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/quorum/guard/script"
)

// Key names a lock: the same name in another database is another lock.
type Key struct {
	// DB is the number of the database, as in SELECT.
	DB int
	// Name is the key as it is on the masters.
	Name string
	// Tag, unless it is empty, is the name of the key in whose cell this one is kept, with all
	// others of that tag: one vote is about all of them. Without it the key is kept in a cell of
	// its own name.
	Tag string
	// Moves is set for a lock key, where these can be moved: what is done about it is done only
	// while the locks are on the masters. Else it is an *ElsewhereError, and nothing is done.
	Moves bool
	// Era, unless it is zero, is the only era of the masters in which something may be done about
	// the key: for who moves it.
	Era int
}

// cell is the name of the cell in which the key is kept.
func (k Key) cell() string { return cmp.Or(k.Tag, k.Name) }

// anywhere is the key wherever its locks are.
func (k Key) anywhere() Key {
	k.Moves, k.Era = false, 0
	return k
}

// cellsOf are the cells of keys, each once, and of each key the number of its own.
func cellsOf(keys []Key) (cells []string, of []int) {
	if len(keys) == 1 {
		return []string{keys[0].cell()}, []int{0}
	}
	known := make(map[string]int, len(keys))
	of = make([]int, len(keys))
	for i, k := range keys {
		at, seen := known[k.cell()]
		if !seen {
			at = len(cells)
			known[k.cell()] = at
			cells = append(cells, k.cell())
		}
		of[i] = at
	}
	return cells, of
}

// anyTagged reports whether a key has a tag.
func anyTagged(keys []Key) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.Tag != "" })
}

func namesOf(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// OwnKeyError is returned where a lock cannot have a name with which the keys of the proxies' own
// begin on the masters.
type OwnKeyError struct {
	// Key is the name.
	Key string
}

// Error is a sentence that names the key.
func (e *OwnKeyError) Error() string {
	return fmt.Sprintf("the key %q cannot be a lock: names and tags that begin with %q are the proxies' own", e.Key, script.OwnPrefix)
}

// ownKey returns an *OwnKeyError for the first key that is not a lock's.
func ownKey(keys ...Key) error {
	for _, key := range keys {
		if isOwn(key.Name) || isOwn(key.Tag) {
			return &OwnKeyError{Key: key.Name}
		}
	}
	return nil
}

func isOwn(name string) bool { return strings.HasPrefix(name, script.OwnPrefix) }
