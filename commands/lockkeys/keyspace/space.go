package keyspace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Remaining times that are none.
const (
	// Endless is that of a key without expiry.
	Endless time.Duration = -1
	// Unknown is that of a key of which only the value is known, or guessed.
	Unknown time.Duration = -2
)

// ErrNeedsRead says that a command needs a remaining time that is Unknown.
var ErrNeedsRead = errors.New("keyspace: the remaining time of a key is not known")

// UnreadError says that a command needs a key that the Space does not have.
type UnreadError struct{ Key string }

// Error names the key.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("keyspace: key %q has not been read", e.Key)
}

// Entry is what stands under a key.
type Entry struct {
	// Present is false where there is no such key; then the rest means nothing.
	Present bool
	// Value is what it holds, as contents.Encode makes it.
	Value string
	// Left is the remaining time, in whole milliseconds, or Endless or Unknown.
	Left time.Duration
}

// Edit is what became of one key.
type Edit struct {
	Key string
	// Was is what the key held before, Now what it is to hold.
	Was, Now Entry
	// KeepLeft is set where the remaining time is to stay as it is. With the same
	// value before and after, the edit is a condition only.
	KeepLeft bool
	// Asked is set where a reply depends on what the key held before.
	Asked bool
	// By is the command, in lower case, that gave the key its remaining time; it is
	// empty where none did.
	By string
}

// Changes reports whether the edit is more than a condition.
func (e Edit) Changes() bool {
	switch {
	case e.Was.Present != e.Now.Present:
		return true
	case !e.Now.Present:
		return false
	default:
		return !e.KeepLeft || e.Now.Value != e.Was.Value
	}
}

// Space is a set of keys at one moment. It is for one goroutine.
type Space struct {
	now     int64 // Unix time in milliseconds
	slots   map[string]*slot
	touched []*slot
	// read are the keys of the commands that only read.
	read map[string]bool
	// seed is for what is chosen at random, and random is made of it when it is needed.
	seed   func() uint64
	random *rand.Rand
	// grown counts the commands that came close to the limit of a collection.
	grown int
}

// Expiries that are no time.
const (
	never    int64 = -1
	sometime int64 = -2 // it is not known when
)

// NewSpace makes a Space without keys at the given moment.
func NewSpace(now time.Time) *Space {
	return &Space{now: now.UnixMilli(), slots: map[string]*slot{}}
}

// Seed has random choices follow from a number, which is asked for when the first one is made.
// Without it they are the same each time.
func (s *Space) Seed(seed func() uint64) { s.seed = seed }

// chance makes random choices: the same ones for the same seed.
func (s *Space) chance() *rand.Rand {
	if s.random == nil {
		seed := uint64(0)
		if s.seed != nil {
			seed = s.seed()
		}
		s.random = rand.New(rand.NewPCG(seed, seed))
	}
	return s.random
}

// Now is the moment of the Space.
func (s *Space) Now() time.Time { return time.UnixMilli(s.now) }

// Put says what a key holds. It is for a Space on which nothing has run yet.
func (s *Space) Put(key string, e Entry) {
	sl := &slot{key: key, was: e, present: e.Present, encoded: e.Value, kept: true}
	switch {
	case e.Left == Unknown:
		sl.expires = sometime
	case e.Left < 0:
		sl.expires = never
	default:
		sl.expires = s.now + e.Left.Milliseconds()
	}
	s.slots[key] = sl
}

// Touched reports whether any key has been read or written.
func (s *Space) Touched() bool { return len(s.touched) > 0 }

// Read are the keys of which a command that changes nothing has told something, with what they hold
// now.
func (s *Space) Read() map[string]Entry {
	if len(s.read) == 0 {
		return nil
	}
	read := make(map[string]Entry, len(s.read))
	for key := range s.read {
		read[key] = s.slots[key].edit(s.now).Now
	}
	return read
}

// Found are the keys that were used and held something before.
func (s *Space) Found() (found []string) {
	for _, sl := range s.touched {
		if sl.was.Present {
			found = append(found, sl.key)
		}
	}
	return found
}

// Edits are what became of each key that has been read or written, in the order of
// the first use. The read ones are conditions of the changes of the others. There
// are none if nothing has changed.
func (s *Space) Edits() []Edit {
	edits := make([]Edit, len(s.touched))
	for i, sl := range s.touched {
		edits[i] = sl.edit(s.now)
	}
	if !slices.ContainsFunc(edits, Edit.Changes) {
		return nil
	}
	return edits
}

func (sl *slot) edit(now int64) Edit {
	e := Edit{Key: sl.key, Was: sl.was, Asked: sl.asked, By: sl.by}
	if !sl.present {
		return e
	}
	e.Now = Entry{Present: true, Value: sl.value()}
	switch {
	case sl.kept && sl.was.Present:
		e.KeepLeft, e.Now.Left = true, sl.was.Left
	case sl.expires == never:
		e.Now.Left = Endless
	default:
		e.Now.Left = milliseconds(sl.expires - now)
	}
	return e
}

// milliseconds is a time of n milliseconds; the longest there is, 292 years, stands
// for all that are longer.
func milliseconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Millisecond))) * time.Millisecond
}

// Held are the keys that are there, in order; with a kind, as TYPE returns it, only those of that
// kind. To ask for them is no use of any: what comes of it may be committed although another came
// or went.
func (s *Space) Held(kind string) (held []string) {
	for key, sl := range s.slots {
		if sl.present && (kind == "" || kind == sl.kind()) {
			held = append(held, key)
		}
	}
	slices.Sort(held)
	return held
}

// reads notes that a command tells of a key.
func (s *Space) reads(key string) {
	if s.read == nil {
		s.read = map[string]bool{}
	}
	s.read[key] = true
}

func (s *Space) has(key string) error {
	if s.slots[key] == nil {
		return &UnreadError{key}
	}
	return nil
}

// use is the slot of a key that is in the Space.
func (s *Space) use(key string) *slot {
	sl := s.slots[key]
	if !sl.touched {
		sl.touched = true
		s.touched = append(s.touched, sl)
	}
	return sl
}

// ask is use of a key on which the reply depends.
func (s *Space) ask(key string) *slot {
	sl := s.use(key)
	sl.asked = true
	return sl
}

// expire sets the time at which a present key goes; one that is over takes it away
// at once. by is the command that asked for it.
func (s *Space) expire(sl *slot, at int64, by string) {
	if at <= s.now {
		sl.remove()
		return
	}
	sl.expires, sl.kept, sl.by = at, false, by
}

// expiry is when a present key goes, or never.
func (sl *slot) expiry() int64 {
	if sl.expires == sometime {
		panic(ended{err: ErrNeedsRead})
	}
	return sl.expires
}
