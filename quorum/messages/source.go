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
	// open are the numbers that are not decided, decided is one below the lowest of them.
	open    map[uint64]bool
	decided uint64
}

// NewSource makes one with a name that no other has.
func NewSource() *Source {
	var bits [sourceSize / 2]byte
	_, _ = rand.Read(bits[:]) // never fails
	return &Source{name: hex.EncodeToString(bits[:]), open: map[uint64]bool{}}
}

// Begin numbers a message of a client whose last one had the number that last points to, and which
// is this one from now on.
func (s *Source) Begin(m Message, last *uint64) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.open[s.last] = true
	m.Source, m.Number, m.After, m.Decided = s.name, s.last, *last, s.decided
	*last = s.last
	return m
}

// state is the name, the last number, and which numbers are not decided, in their order.
func (s *Source) state() (name string, last uint64, open []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.last, slices.Sorted(maps.Keys(s.open))
}

// End is called once it is decided what became of the message: a majority has it, or its client
// gets an error.
func (s *Source) End(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, m.Number)
	for s.decided < s.last && !s.open[s.decided+1] {
		s.decided++
	}
}
