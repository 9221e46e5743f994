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

	mu         sync.Mutex
	lastNumber uint64
	// undecidedNumbers holds the undecided numbers. lastDecided is the number up to which all
	// numbers are decided.
	undecidedNumbers map[uint64]bool
	lastDecided      uint64
}

// NewSource returns a Source with a unique random name.
func NewSource() *Source {
	var bits [sourceSize / 2]byte
	_, _ = rand.Read(bits[:]) // never fails
	return &Source{name: hex.EncodeToString(bits[:]), undecidedNumbers: map[uint64]bool{}}
}

// Begin numbers a message of a client. lastNumber points to the number of the client's previous
// message. Begin sets it to the new number.
func (s *Source) Begin(m Message, lastNumber *uint64) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastNumber++
	s.undecidedNumbers[s.lastNumber] = true
	m.Source, m.Number, m.PreviousNumber, m.LastDecided = s.name, s.lastNumber, *lastNumber, s.lastDecided
	*lastNumber = s.lastNumber
	return m
}

// state returns the name, the last number, and the undecided numbers in ascending order.
func (s *Source) state() (name string, lastNumber uint64, undecidedNumbers []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.lastNumber, slices.Sorted(maps.Keys(s.undecidedNumbers))
}

// End records that a message is decided: a majority has it, or its client gets an error.
func (s *Source) End(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undecidedNumbers, m.Number)
	for s.lastDecided < s.lastNumber && !s.undecidedNumbers[s.lastDecided+1] {
		s.lastDecided++
	}
}
