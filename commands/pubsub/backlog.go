package pubsub

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
)

// DefaultBacklog is how much may wait for all subscribers together, in bytes.
const DefaultBacklog = 256 << 20

// perPlace is what a message counts for each subscriber for whom it waits, beside what it counts
// once.
const perPlace = 32

// backlog is what waits for all subscribers together. It is safe for concurrent use.
type backlog struct {
	limit, bytes, cuts atomic.Int64
	relieving          atomic.Bool
}

// shared is a message in several queues, which counts once.
type shared struct{ places atomic.Int32 }

// enter notes that a message of this size waits for one more subscriber.
func (b *backlog) enter(m *shared, size int) {
	if m.places.Add(1) == 1 {
		b.bytes.Add(int64(size))
	}
	b.bytes.Add(perPlace)
}

// leave notes that it does so for one less.
func (b *backlog) leave(m *shared, size int) {
	if m.places.Add(-1) == 0 {
		b.bytes.Add(-int64(size))
	}
	b.bytes.Add(-perPlace)
}

func (b *backlog) isOver() bool { return b.bytes.Load() > b.limit.Load() }

// SetBacklog has another limit hold for what may wait for all subscribers together, in bytes; 0:
// DefaultBacklog. For whom most waits is disconnected, and then the next one, until no more waits
// than that.
func (h *Hub) SetBacklog(limit int64) {
	h.backlog.limit.Store(cmp.Or(limit, DefaultBacklog))
	h.relieve()
}

// Backlog is how many bytes wait for all subscribers, and how many were disconnected because that
// was too much. A nil Hub has none.
func (h *Hub) Backlog() (bytes, cuts int64) {
	if h == nil {
		return 0, 0
	}
	return h.backlog.bytes.Load(), h.backlog.cuts.Load()
}

// relieve disconnects subscribers, soon, if too much waits.
func (h *Hub) relieve() {
	if !h.backlog.isOver() || h.backlog.relieving.Swap(true) {
		return
	}
	go func() {
		for h.backlog.isOver() && h.cutOne() {
		}
		h.backlog.relieving.Store(false)
	}()
}

// cutOne disconnects the subscriber for whom most waits, if there is one.
func (h *Hub) cutOne() bool {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.all))
	h.mu.Unlock()
	var slowest *Subscriber
	most := 0
	for _, s := range all {
		if size := s.waiting(); size > most {
			slowest, most = s, size
		}
	}
	if slowest == nil {
		return false
	}
	slowest.mu.Lock()
	defer slowest.mu.Unlock()
	if !slowest.closed {
		h.backlog.cuts.Add(1)
		slowest.cut()
	}
	return true
}

// waiting is how much waits for a subscriber that was not disconnected.
func (s *Subscriber) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	return s.size
}

// drop forgets what waits, but for what is being written. It is called with mu held.
func (s *Subscriber) drop() {
	for _, p := range s.queue {
		s.hub.backlog.leave(&p.shared, p.memory())
	}
	for _, m := range s.inbox {
		s.hub.backlog.leave(&m.shared, m.size())
	}
	s.queue, s.inbox = nil, nil
}

// wrote forgets what was being written. It is called with mu held.
func (s *Subscriber) wrote() {
	for _, p := range s.writing {
		s.hub.backlog.leave(&p.shared, p.memory())
		s.size -= p.size()
	}
	s.writing = nil
}
