package keygroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"redlock-proxy/quorum/cell"
	"redlock-proxy/quorum/register"
)

// NoExpiry is the remaining time of a key without expiry.
const NoExpiry = cell.NoExpiry

// Group holds the keys of a cell at one moment. It is not safe for concurrent use.
type Group struct {
	format *format
	// name is the name of the cell and of its own key, which may be absent. snapshot is the value
	// of the cell.
	name     string
	snapshot register.Snapshot
	// isGroup is set if the cell holds a keygroup, not only its own key.
	isGroup bool
	keys    map[string]key
	changed bool
	// isShifted is set if the own key, stored without a keygroup, keeps its remaining time plus
	// ownShift.
	isShifted bool
	ownShift  time.Duration
}

// format describes how a Group is stored.
type format struct {
	// prefix begins the value if it has several members.
	prefix string
	// isOwn reports whether a key can be stored without a keygroup, and encodeOwn does so.
	isOwn     func(b *Group, name string) bool
	encodeOwn func(member) string
}

// keysFormat is the format of keys with the same hash tag.
var keysFormat = &format{
	prefix:    prefix,
	isOwn:     func(b *Group, name string) bool { return name == b.name },
	encodeOwn: func(m member) string { return m.value },
}

type key struct {
	member
	// hasNewTTL is set if the key gets a new TTL: newTTL, which may be NoExpiry. Then expiryOffset
	// is not set yet.
	hasNewTTL bool
	newTTL    time.Duration
}

// Open decodes a cell, and omits its expired keys. A foreign value is never a keygroup.
//
// Errors: ErrUnreadable; register.ErrTTLUnknown if a keygroup's remaining time is unknown.
func Open(name string, f register.Snapshot) (*Group, error) {
	b := &Group{format: keysFormat, name: name, snapshot: f, keys: map[string]key{}}
	switch {
	case !f.Present:
		return b, nil
	case f.Foreign || !IsGroup(f.Value):
		b.putOwn(name, f.Value)
		return b, nil
	}
	return b, b.decodeMembers()
}

// putOwn adds the key that is stored without a keygroup.
func (b *Group) putOwn(name, value string) {
	b.keys[name] = key{member: member{name: name, value: value, version: b.snapshot.Version, expiryOffset: b.ownExpiryOffset()}}
}

// decodeMembers adds the members of the value that have not expired.
func (b *Group) decodeMembers() error {
	f := b.snapshot
	if f.TimeLeftUnknown {
		return register.ErrTTLUnknown
	}
	members, err := decode(f.Value)
	if err != nil {
		return err
	}
	b.isGroup = true
	for _, m := range members {
		switch {
		case f.LongestTimeLeft < 0:
			m.expiryOffset = NoExpiry // an operator removed the expiry of the cell
		case m.expiryOffset != NoExpiry && f.LongestTimeLeft <= m.expiryOffset:
			continue
		}
		b.keys[m.name] = key{member: m}
	}
	return nil
}

// ownExpiryOffset returns the expiry offset of a key stored without a keygroup: it expires with the
// cell.
func (b *Group) ownExpiryOffset() time.Duration {
	if !b.snapshot.TimeLeftUnknown && b.snapshot.LongestTimeLeft < 0 {
		return NoExpiry
	}
	return 0
}

// IsGroup reports whether the cell holds a keygroup.
func (b *Group) IsGroup() bool { return b.isGroup }

// Names returns the names of the keys, sorted.
func (b *Group) Names() []string { return slices.Sorted(maps.Keys(b.keys)) }

// Snapshot returns the value of a key, including the changes since Open.
func (b *Group) Snapshot(name string) register.Snapshot {
	k, exists := b.keys[name]
	if !exists {
		return register.Snapshot{Shared: b.isGroup}
	}
	l := register.Snapshot{Present: true, Value: k.value, Version: k.version, Shared: b.isGroup}
	switch {
	case k.hasNewTTL:
		l.TimeLeft = k.newTTL
	case b.snapshot.TimeLeftUnknown:
		l.TimeLeftUnknown = true
	case k.expiryOffset == NoExpiry:
		l.TimeLeft = NoExpiry
	default:
		// No master has a shorter remaining time. The key exists, so it has not expired.
		l.TimeLeft = max(b.snapshot.ShortestTimeLeft-k.expiryOffset, time.Millisecond)
	}
	l.LongestTimeLeft, l.ShortestTimeLeft = l.TimeLeft, l.TimeLeft
	if l.TimeLeft > 0 && !k.hasNewTTL {
		l.LongestTimeLeft = max(l.TimeLeft, b.snapshot.LongestTimeLeft-k.expiryOffset)
	}
	return l
}

// Put sets a key to a value with the TTL timeLeft, in whole milliseconds, or NoExpiry.
func (b *Group) Put(name, value string, timeLeft time.Duration) {
	b.changed = true
	b.keys[name] = key{member: member{name: name, value: value}, hasNewTTL: true, newTTL: timeLeft}
}

// Replace replaces the value of a key and keeps its remaining time, or puts an absent key without
// expiry.
func (b *Group) Replace(name, value string) {
	k, exists := b.keys[name]
	if !exists {
		b.Put(name, value, NoExpiry)
		return
	}
	b.changed = true
	k.value, k.version = value, ""
	b.keys[name] = k
}

// ReplaceShifted replaces the value of a present key. Its remaining time becomes longer by shift.
func (b *Group) ReplaceShifted(name, value string, shift time.Duration) {
	b.Replace(name, value)
	k := b.keys[name]
	switch {
	case k.expiryOffset == NoExpiry:
	case b.isGroup:
		k.expiryOffset -= shift
	default:
		b.isShifted, b.ownShift = true, shift
	}
	b.keys[name] = k
}

// Remove removes a key, if it is present.
func (b *Group) Remove(name string) {
	if _, exists := b.keys[name]; exists {
		b.changed = true
		delete(b.keys, name)
	}
}

// MaxBytes limits the bytes of an encoded keygroup.
const MaxBytes = 1 << 20

// ErrTooLarge means that a keygroup exceeds MaxBytes. It names no key, because the client may not
// have access to the other keys.
var ErrTooLarge = fmt.Errorf(
	"the keys of one tag are too large: together they may have at most %d bytes, including their names", MaxBytes)

func (b *Group) sortedKeys() []key {
	return slices.SortedFunc(maps.Values(b.keys), func(x, y key) int { return strings.Compare(x.name, y.name) })
}
