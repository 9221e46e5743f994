package register

import (
	"sync"
	"time"
)

// missed are the keys that were looked at, to be mended, while some master did not answer:
// once all do, they are looked at again. A master that was away for a moment would
// otherwise stay different until the next command.
type missed struct {
	mu      sync.Mutex
	keys    map[string]bool
	bytes   int // of the keys
	waiting bool
}

const (
	// wellPause is how often it is asked whether all masters are well again.
	wellPause = 250 * time.Millisecond
	// maxMissed and maxMissedBytes bound the keys that are remembered, maxReturned those that
	// are looked at at a time.
	maxMissed, maxMissedBytes, maxReturned = 1 << 14, 16 << 20, 256
)

// mendWhenWell has a key mended once all masters are well. Where too many are remembered
// already, the next command on the key sees to it.
func (r *Register) mendWhenWell(key string) {
	r.missed.mu.Lock()
	defer r.missed.mu.Unlock()
	if !r.missed.add(key) {
		return
	}
	if !r.missed.waiting {
		r.missed.waiting = true
		r.masters.After(wellPause, r.mendMissed)
	}
}

// mendMissed has missed keys mended if all masters are well, and waits on if some are left.
func (r *Register) mendMissed() {
	var now []string
	if r.masters.Well() {
		now = r.missed.take()
	}
	for _, key := range now {
		r.mendLater(key)
	}
	r.missed.mu.Lock()
	defer r.missed.mu.Unlock()
	if r.missed.waiting = len(r.missed.keys) > 0; r.missed.waiting {
		r.masters.After(wellPause, r.mendMissed)
	}
}

// add remembers a key, and reports whether there was room. It is called with mu held.
func (m *missed) add(key string) bool {
	switch {
	case m.keys[key]:
		return true
	case len(m.keys) >= maxMissed || m.bytes+len(key) > maxMissedBytes:
		return false
	}
	m.keys[key] = true
	m.bytes += len(key)
	return true
}

func (m *missed) take() (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.keys {
		if len(keys) == maxReturned {
			break
		}
		keys = append(keys, key)
		delete(m.keys, key)
		m.bytes -= len(key)
	}
	return keys
}
