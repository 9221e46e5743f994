package cell

import "time"

// Store is a minimal master in memory. The zero value is empty.
type Store struct {
	// Now is the time since 1970 on the master's clock.
	Now     time.Duration
	entries map[string]entry
}

// entry is a cell with its expiry. A zero expiry means never.
type entry struct {
	cell      Cell
	expiresAt time.Duration
}

// Get returns the current state of a key.
func (s *Store) Get(key string) KeyState {
	found, exists := s.entries[key]
	switch {
	case !exists, found.expiresAt != 0 && found.expiresAt <= s.Now:
		delete(s.entries, key)
		return KeyState{}
	case found.expiresAt == 0:
		return KeyState{Cell: found.cell, TimeLeft: NoExpiry}
	default:
		return KeyState{Cell: found.cell, TimeLeft: (found.expiresAt - s.Now).Truncate(time.Millisecond)}
	}
}

func (s *Store) getAll(keys []string) []KeyState {
	states := make([]KeyState, len(keys))
	for i, key := range keys {
		states[i] = s.Get(key)
	}
	return states
}

// Put stores a cell that expires after timeLeft, or never if timeLeft is NoExpiry.
func (s *Store) Put(key string, c Cell, timeLeft time.Duration) {
	stored := entry{cell: c}
	if timeLeft != NoExpiry {
		stored.expiresAt = s.Now + timeLeft
	}
	s.set(key, stored)
}

// replaceKeepingTTL replaces a cell, and keeps its remaining time.
func (s *Store) replaceKeepingTTL(key string, c Cell) { s.set(key, entry{c, s.entries[key].expiresAt}) }

func (s *Store) set(key string, stored entry) {
	if s.entries == nil {
		s.entries = map[string]entry{}
	}
	s.entries[key] = stored
}

// Delete removes a key.
func (s *Store) Delete(key string) { delete(s.entries, key) }
