package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/quorum/guard/script"
)

// Key names a lock. The same name in another database names another lock.
type Key struct {
	// DB is the number of the database, as in SELECT.
	DB int
	// Name is the key's name on the masters.
	Name string
	// Tag, unless it is empty, is the name of the cell that the key shares with all other keys of
	// the same hash tag. One vote covers all of these keys. Without a tag the key has a cell of its
	// own name.
	Tag string
	// Movable is set for a lock key if lock keys can be moved. Then a command on the key fails with
	// a *WrongLocationError, and changes nothing, unless the locks are on the masters.
	Movable bool
	// Holder, unless it is empty, is the token of one holder of a lock that several clients may
	// hold. Then the key names only this holder.
	Holder string
	// Era, unless it is zero, is the only era in which a command may access the key. The proxy that
	// moves the locks sets it.
	Era int
}

// cellName returns the name of the cell that holds the key.
func (k Key) cellName() string { return cmp.Or(k.Tag, k.Name) }

// OfHolder returns the key of one holder of a lock that several clients may hold.
func (k Key) OfHolder(token string) Key {
	k.Holder = token
	return k
}

// withoutHolder returns the key of the whole lock.
func (k Key) withoutHolder() Key { return k.OfHolder("") }

// grantName returns the name under which a proxy records what it granted to a holder.
func (k Key) grantName(token string) string { return k.Name + "\x00" + token }

// withoutLocation returns the key without Movable and Era, so that a command may access it in any
// era.
func (k Key) withoutLocation() Key {
	k.Movable, k.Era = false, 0
	return k
}

// cellsOf returns the names of the keys' cells, each once, and for each key the index of its cell.
func cellsOf(keys []Key) (cells []string, cellIndex []int) {
	if len(keys) == 1 {
		return []string{keys[0].cellName()}, []int{0}
	}
	indexes := make(map[string]int, len(keys))
	cellIndex = make([]int, len(keys))
	for i, k := range keys {
		index, exists := indexes[k.cellName()]
		if !exists {
			index = len(cells)
			indexes[k.cellName()] = index
			cells = append(cells, k.cellName())
		}
		cellIndex[i] = index
	}
	return cells, cellIndex
}

func hasTaggedKey(keys []Key) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.Tag != "" })
}

func namesOf(keys []Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// OwnKeyError means that a command names a key with the prefix of the keys that proxies keep on the
// masters.
type OwnKeyError struct {
	// Key is the name of the refused key.
	Key string
}

// Error returns a sentence that names the key.
func (e *OwnKeyError) Error() string {
	return fmt.Sprintf("the key %q cannot be a lock: names and hash tags that begin with %q are reserved for proxies",
		e.Key, script.OwnPrefix)
}

// checkOwnKeys returns an *OwnKeyError for the first key whose name or hash tag is reserved for
// proxies.
func checkOwnKeys(keys ...Key) error {
	for _, key := range keys {
		if isOwnName(key.Name) || isOwnName(key.Tag) {
			return &OwnKeyError{Key: key.Name}
		}
	}
	return nil
}

func isOwnName(name string) bool { return strings.HasPrefix(name, script.OwnPrefix) }
