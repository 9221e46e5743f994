package bag

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Endless is the remaining time of what has no end.
const Endless time.Duration = -1

// ErrNeedsTime is returned where the remaining time of the cell must be known.
var ErrNeedsTime = errors.New("the remaining time of the cell is not known")

// Found is what a cell was found to hold.
type Found struct {
	// Name is that of the cell, which the key that is meant by the cell's own name has, too.
	Name string
	// Present is false where the cell is absent; then the rest means nothing.
	Present bool
	Text    string
	// Version is unlike that of any other state of the cell.
	Version string
	// Longest and Shortest are the remaining times of the cell on the master where it ends last, and where it ends first, of
	// those that hold it, or Endless. With Unknown they mean nothing.
	Longest, Shortest time.Duration
	Unknown           bool
	// Foreign: no proxy wrote it. It is never a bag.
	Foreign bool
}

// Entry is a key in a cell.
type Entry struct {
	Present bool
	Value   string
	// Left is its remaining time, or Endless. It means nothing with Unknown.
	Left    time.Duration
	Unknown bool
	// Version is unlike that of any other value of the key; empty for an absent one.
	Version string
}

// Bag is the keys of a cell at one moment. It is for one goroutine.
type Bag struct {
	found Found
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

// Open takes apart what a cell holds. Keys that are over are not there any more.
//
// Errors: ErrUnreadable; ErrNeedsTime where there is a bag and its time is not known.
func Open(f Found) (*Bag, error) {
	b := &Bag{found: f, keys: map[string]key{}}
	switch {
	case !f.Present:
		return b, nil
	case f.Foreign || !Is(f.Text):
		b.keys[f.Name] = key{member: member{name: f.Name, value: f.Text, version: f.Version, before: b.ownBefore()}}
		return b, nil
	case f.Unknown:
		return nil, ErrNeedsTime
	}
	members, err := decode(f.Text)
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
func (b *Bag) Look(name string) Entry {
	k, there := b.keys[name]
	if !there {
		return Entry{}
	}
	e := Entry{Present: true, Value: k.value, Version: k.version}
	switch {
	case b.found.Unknown:
		e.Unknown = true
	case k.before == Endless:
		e.Left = Endless
	default:
		// It is returned as no longer than any master has it; it exists, so it is not over.
		e.Left = max(b.found.Shortest-k.before, time.Millisecond)
	}
	return e
}

// Put has a key hold a value for a time, in whole milliseconds, or Endless.
func (b *Bag) Put(name, value string, left time.Duration) {
	b.changed = true
	b.keys[name] = key{member: member{name: name, value: value}, new: true, left: left}
}

// Replace has a key that exists hold another value, for the time that is left to it. One that is absent is put without an end.
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

// MaxBytes is how many bytes the keys of a cell may have together, with their names, where there are several.
const MaxBytes = 1 << 20

// ErrTooLarge is returned where the keys of a cell would have too many bytes together. It is without names: who has one of the keys
// may not know of the others.
var ErrTooLarge = fmt.Errorf("the keys of one tag may have %d bytes together, with their names", MaxBytes)

// sorted are the keys in the order of their names.
func (b *Bag) sorted() []key {
	return slices.SortedFunc(maps.Values(b.keys), func(x, y key) int { return strings.Compare(x.name, y.name) })
}
