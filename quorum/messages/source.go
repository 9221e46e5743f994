package messages

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
)

// Source numbers the messages of this proxy. It is safe for concurrent use.
type Source struct {
	name string

	mu   sync.Mutex
	last uint64
	// undecided holds the undecided numbers. decided is the number up to which all numbers are
	// decided.
	undecided map[uint64]bool
	decided   uint64
}

// NewSource returns a Source with a unique random name.
func NewSource() *Source {
	var bits [sourceSize / 2]byte
	_, _ = rand.Read(bits[:]) // never fails
	return &Source{name: hex.EncodeToString(bits[:]), undecided: map[uint64]bool{}}
}

// Begin numbers a message of a client. last points to the number of the client's previous message.
// Begin sets it to the new number.
func (s *Source) Begin(m Message, last *uint64) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.undecided[s.last] = true
	m.Source, m.Number, m.Previous, m.DecidedUpTo = s.name, s.last, *last, s.decided
	*last = s.last
	return m
}

// state returns the name, the last number, and the undecided numbers in ascending order.
func (s *Source) state() (name string, last uint64, undecided []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.last, slices.Sorted(maps.Keys(s.undecided))
}

// End records that a message is decided: a majority has it, or its client gets an error.
func (s *Source) End(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undecided, m.Number)
	for s.decided < s.last && !s.undecided[s.decided+1] {
		s.decided++
	}
}
