package keyspace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Special remaining times.
const (
	// NoExpiry is the remaining time of a key without expiry.
	NoExpiry time.Duration = -1
	// UnknownExpiry is the remaining time of a key if only its value is known or guessed.
	UnknownExpiry time.Duration = -2
)

// ErrNeedsRead is the error of a command that needs a remaining time that is UnknownExpiry.
var ErrNeedsRead = errors.New("keyspace: the remaining time of a key is unknown")

// UnreadError is the error of a command that needs a key that the Snapshot does not have.
type UnreadError struct{ Key string }

// Error implements error. It names the key.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("keyspace: key %q has not been read", e.Key)
}

// Entry holds the state of a key.
type Entry struct {
	// Present is false if the key does not exist; the other fields then mean nothing.
	Present bool
	// Value is the value, encoded by contents.Encode.
	Value string
	// RemainingTTL is the remaining time, in whole milliseconds, or NoExpiry or UnknownExpiry.
	RemainingTTL time.Duration
}

// Edit describes the change of one key, or a condition on the key.
type Edit struct {
	Key string
	// Before and After hold the states of the key before and after the edit.
	Before, After Entry
	// KeepTTL is true if the remaining time does not change. If the value does not change either,
	// the edit is only a condition.
	KeepTTL bool
	// ReplyDependsOn is true if a reply depends on Before.
	ReplyDependsOn bool
	// ExpiryCommand is the command, in lower case, that set the remaining time. It is empty if no
	// command set it.
	ExpiryCommand string
}

// IsChange reports whether the edit changes the key. Otherwise, the edit is only a condition.
func (e Edit) IsChange() bool {
	switch {
	case e.Before.Present != e.After.Present:
		return true
	case !e.After.Present:
		return false
	default:
		return !e.KeepTTL || e.After.Value != e.Before.Value
	}
}

// Snapshot holds a set of keys at one moment. It is not safe for concurrent use.
type Snapshot struct {
	now      int64 // Unix time in milliseconds
	states   map[string]*keyState
	usedKeys []*keyState
	// readKeys holds the keys of the commands that only read.
	readKeys map[string]bool
	// seed returns the seed of random choices. random is the generator; it is nil before the first
	// random choice.
	seed   func() uint64
	random *rand.Rand
	// nearLimitRuns counts the commands that ran near the limits of a collection.
	nearLimitRuns int
}

// Special expiries.
const (
	noExpiry      int64 = -1
	unknownExpiry int64 = -2 // only the value is known or guessed
)

// NewSnapshot returns a Snapshot without keys at the given moment.
func NewSnapshot(now time.Time) *Snapshot {
	return &Snapshot{now: now.UnixMilli(), states: map[string]*keyState{}}
}

// Seed sets the function that returns the seed of random choices. The first random choice calls it.
// Without this function, random choices are the same each time.
func (s *Snapshot) Seed(seed func() uint64) { s.seed = seed }

// generator returns the generator of random choices. It makes the same choices for the same seed.
func (s *Snapshot) generator() *rand.Rand {
	if s.random == nil {
		seed := uint64(0)
		if s.seed != nil {
			seed = s.seed()
		}
		s.random = rand.New(rand.NewPCG(seed, seed))
	}
	return s.random
}

// Now returns the moment of the Snapshot.
func (s *Snapshot) Now() time.Time { return time.UnixMilli(s.now) }

// Put sets the state of a key. The caller must call Put before any command runs.
func (s *Snapshot) Put(key string, e Entry) {
	k := &keyState{key: key, initialEntry: e, present: e.Present, encoded: e.Value, keepsExpiry: true}
	switch {
	case e.RemainingTTL == UnknownExpiry:
		k.expiresAt = unknownExpiry
	case e.RemainingTTL < 0:
		k.expiresAt = noExpiry
	default:
		k.expiresAt = s.now + e.RemainingTTL.Milliseconds()
	}
	s.states[key] = k
}

// HasUsedKeys reports whether a command has read or written any key.
func (s *Snapshot) HasUsedKeys() bool { return len(s.usedKeys) > 0 }

// KeysRead returns the keys that read-only commands have used, with their current states.
func (s *Snapshot) KeysRead() map[string]Entry {
	if len(s.readKeys) == 0 {
		return nil
	}
	read := make(map[string]Entry, len(s.readKeys))
	for key := range s.readKeys {
		read[key] = s.states[key].edit(s.now).After
	}
	return read
}

// FoundKeys returns the keys that commands used, and that existed before.
func (s *Snapshot) FoundKeys() (keys []string) {
	for _, k := range s.usedKeys {
		if k.initialEntry.Present {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// Edits returns an edit for each key that commands read or wrote, in the order of the first use.
// Keys that commands only read are conditions of the changes. It returns nil if nothing has
// changed.
func (s *Snapshot) Edits() []Edit {
	edits := make([]Edit, len(s.usedKeys))
	for i, k := range s.usedKeys {
		edits[i] = k.edit(s.now)
	}
	if !slices.ContainsFunc(edits, Edit.IsChange) {
		return nil
	}
	return edits
}

func (k *keyState) edit(now int64) Edit {
	e := Edit{Key: k.key, Before: k.initialEntry, ReplyDependsOn: k.replyDependsOn, ExpiryCommand: k.expiryCommand}
	if !k.present {
		return e
	}
	e.After = Entry{Present: true, Value: k.value()}
	switch {
	case k.keepsExpiry && k.initialEntry.Present:
		e.KeepTTL, e.After.RemainingTTL = true, k.initialEntry.RemainingTTL
	case k.expiresAt == noExpiry:
		e.After.RemainingTTL = NoExpiry
	default:
		e.After.RemainingTTL = milliseconds(k.expiresAt - now)
	}
	return e
}

// milliseconds returns a duration of n milliseconds, limited to the longest duration, 292 years.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// ExistingKeys returns the existing keys, in order. If kind is not "", it returns only keys of this
// type (see TYPE). It does not mark the keys as used, so the edits do not depend on them.
func (s *Snapshot) ExistingKeys(kind string) (keys []string) {
	for key, k := range s.states {
		if k.present && (kind == "" || kind == k.kind()) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// noteRead records that a command that only reads uses a key.
func (s *Snapshot) noteRead(key string) {
	if s.readKeys == nil {
		s.readKeys = map[string]bool{}
	}
	s.readKeys[key] = true
}

func (s *Snapshot) checkRead(key string) error {
	if s.states[key] == nil {
		return &UnreadError{key}
	}
	return nil
}

// use returns the state of a key in the Snapshot, and marks the key as used.
func (s *Snapshot) use(key string) *keyState {
	k := s.states[key]
	if !k.isUsed {
		k.isUsed = true
		s.usedKeys = append(s.usedKeys, k)
	}
	return k
}

// observe does the same as use for a key on which the reply depends.
func (s *Snapshot) observe(key string) *keyState {
	k := s.use(key)
	k.replyDependsOn = true
	return k
}

// expire sets the expiry of a key, and records the command that set it. An expiry in the past
// removes the key.
func (s *Snapshot) expire(k *keyState, at int64, command string) {
	if at <= s.now {
		k.remove()
		return
	}
	k.expiresAt, k.keepsExpiry, k.expiryCommand = at, false, command
}

// expiry returns the expiry of an existing key, or noExpiry.
func (k *keyState) expiry() int64 {
	if k.expiresAt == unknownExpiry {
		panic(abortPanic{err: ErrNeedsRead})
	}
	return k.expiresAt
}
