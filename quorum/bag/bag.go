package bag

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// Endless is the remaining time of what has no end.
const Endless = cell.Endless

// Bag is the keys of a cell at one moment. It is for one goroutine.
type Bag struct {
	// name is that of the cell, which the key that is meant by the cell's own name has, too; found
	// is what it was found to hold.
	name  string
	found register.Look
	// isBag: there is a bag in the cell, and not just its own key.
	isBag   bool
	keys    map[string]key
	changed bool
}

// key is one that exists.
type key struct {
	member
	// new: before is not its distance yet; left is the time that it gets, or Endless.
	new  bool
	left time.Duration
}

// Open takes apart what the cell of a name holds. Keys that are over are not there any more. What
// no proxy wrote is never a bag.
//
// Errors: ErrUnreadable; register.ErrNeedsLeft where there is a bag and its time is not known.
func Open(name string, f register.Look) (*Bag, error) {
	b := &Bag{name: name, found: f, keys: map[string]key{}}
	switch {
	case !f.Present:
		return b, nil
	case f.Foreign || !Is(f.Value):
		b.keys[name] = key{member: member{name: name, value: f.Value, version: f.Version, before: b.ownBefore()}}
		return b, nil
	case f.Unknown:
		return nil, register.ErrNeedsLeft
	}
	members, err := decode(f.Value)
	if err != nil {
		return nil, err
	}
	b.isBag = true
	for _, m := range members {
		switch {
		case f.Longest < 0:
			m.before = Endless // somebody took the cell's time away
		case m.before != Endless && f.Longest <= m.before:
			continue
		}
		b.keys[m.name] = key{member: m}
	}
	return b, nil
}

// ownBefore is that of the key which is in the cell by itself: it ends with the cell.
func (b *Bag) ownBefore() time.Duration {
	if !b.found.Unknown && b.found.Longest < 0 {
		return Endless
	}
	return 0
}

// Shared reports whether the cell holds more than its own key by itself.
func (b *Bag) Shared() bool { return b.isBag }

// Names are the keys that are there, in order.
func (b *Bag) Names() []string { return slices.Sorted(maps.Keys(b.keys)) }

// Look is the current value of a key.
func (b *Bag) Look(name string) register.Look {
	k, there := b.keys[name]
	if !there {
		return register.Look{Shared: b.isBag}
	}
	l := register.Look{Present: true, Value: k.value, Version: k.version, Shared: b.isBag}
	switch {
	case b.found.Unknown:
		l.Unknown = true
	case k.before == Endless:
		l.Left = Endless
	default:
		// It is returned as no longer than any master has it; it exists, so it is not over.
		l.Left = max(b.found.Shortest-k.before, time.Millisecond)
	}
	l.Longest, l.Shortest = l.Left, l.Left
	return l
}

// Put has a key hold a value for a time, in whole milliseconds, or Endless.
func (b *Bag) Put(name, value string, left time.Duration) {
	b.changed = true
	b.keys[name] = key{member: member{name: name, value: value}, new: true, left: left}
}

// Replace has a key that exists hold another value, for the time that is left to it. One that is
// absent is put without an end.
func (b *Bag) Replace(name, value string) {
	k, there := b.keys[name]
	if !there {
		b.Put(name, value, Endless)
		return
	}
	b.changed = true
	k.value, k.version = value, ""
	b.keys[name] = k
}

// Remove takes a key away.
func (b *Bag) Remove(name string) {
	if _, there := b.keys[name]; there {
		b.changed = true
		delete(b.keys, name)
	}
}

// MaxBytes is how many bytes the keys of a cell may have together, with their names, where there
// are several.
const MaxBytes = 1 << 20

// ErrTooLarge is returned where the keys of a cell would have too many bytes together. It is
// without names: who has one of the keys may not know of the others.
var ErrTooLarge = fmt.Errorf("the keys of one tag may have %d bytes together, with their names", MaxBytes)

// sorted are the keys in the order of their names.
func (b *Bag) sorted() []key {
	return slices.SortedFunc(maps.Values(b.keys), func(x, y key) int { return strings.Compare(x.name, y.name) })
}
