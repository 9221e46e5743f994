package cell

import "time"

// Store is a minimal master in memory. The zero value is empty.
type Store struct {
	// Now is the master's clock, since 1970.
	Now   time.Duration
	slots map[string]slot
}

// slot is a cell with its expiry; zero: never.
type slot struct {
	cell Cell
	ends time.Duration
}

// Look returns the current state of a key.
func (s *Store) Look(key string) Found {
	at, there := s.slots[key]
	switch {
	case !there, at.ends != 0 && at.ends <= s.Now:
		delete(s.slots, key)
		return Found{}
	case at.ends == 0:
		return Found{Cell: at.cell, Left: Endless}
	default:
		return Found{Cell: at.cell, Left: (at.ends - s.Now).Truncate(time.Millisecond)}
	}
}

func (s *Store) looks(keys []string) []Found {
	all := make([]Found, len(keys))
	for i, key := range keys {
		all[i] = s.Look(key)
	}
	return all
}

// Put stores a cell for a time, or Endless.
func (s *Store) Put(key string, c Cell, left time.Duration) {
	at := slot{cell: c}
	if left != Endless {
		at.ends = s.Now + left
	}
	s.set(key, at)
}

// keep replaces a cell, and keeps its remaining time.
func (s *Store) keep(key string, c Cell) { s.set(key, slot{c, s.slots[key].ends}) }

func (s *Store) set(key string, at slot) {
	if s.slots == nil {
		s.slots = map[string]slot{}
	}
	s.slots[key] = at
}

// Delete removes a key.
func (s *Store) Delete(key string) { delete(s.slots, key) }
