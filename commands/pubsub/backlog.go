package pubsub

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
)

// DefaultBacklog is the default limit on messages that wait for all subscribers together, in bytes.
const DefaultBacklog = 256 << 20

// queueOverhead is the size of the entry of a message in a queue, in bytes. The size of the message
// itself counts once for all queues.
const queueOverhead = 32

// backlog counts the messages that wait for all subscribers together. It is safe for concurrent
// use.
type backlog struct {
	limit, bytes, disconnects atomic.Int64
	disconnecting             atomic.Bool
}

// queueCounter counts the queues that contain a message, so that its size counts once.
type queueCounter struct{ queues atomic.Int32 }

// enter records that a message of this size is in one more queue.
func (b *backlog) enter(m *queueCounter, size int) {
	if m.queues.Add(1) == 1 {
		b.bytes.Add(int64(size))
	}
	b.bytes.Add(queueOverhead)
}

// leave records that a message of this size is in one queue fewer.
func (b *backlog) leave(m *queueCounter, size int) {
	if m.queues.Add(-1) == 0 {
		b.bytes.Add(-int64(size))
	}
	b.bytes.Add(-queueOverhead)
}

func (b *backlog) isAboveLimit() bool { return b.bytes.Load() > b.limit.Load() }

// SetBacklog sets the limit on messages that wait for all subscribers together, in bytes; 0 means
// DefaultBacklog. Above the limit, the Hub disconnects the subscribers with the most waiting
// messages, one by one.
func (h *Hub) SetBacklog(limit int64) {
	h.backlog.limit.Store(cmp.Or(limit, DefaultBacklog))
	h.disconnectSlowest()
}

// Backlog returns the number of bytes that wait for all subscribers, and the number of subscribers
// that the Hub disconnected because of the limit. For a nil Hub, both are 0.
func (h *Hub) Backlog() (bytes, disconnects int64) {
	if h == nil {
		return 0, 0
	}
	return h.backlog.bytes.Load(), h.backlog.disconnects.Load()
}

// disconnectSlowest starts to disconnect subscribers if too many messages wait.
func (h *Hub) disconnectSlowest() {
	if !h.backlog.isAboveLimit() || h.backlog.disconnecting.Swap(true) {
		return
	}
	go func() {
		for h.backlog.isAboveLimit() && h.disconnectOne() {
		}
		h.backlog.disconnecting.Store(false)
	}()
}

// disconnectOne disconnects the subscriber with the most waiting messages. It returns false if no
// messages wait.
func (h *Hub) disconnectOne() bool {
	h.mu.Lock()
	subscribers := slices.Collect(maps.Keys(h.subscribers))
	h.mu.Unlock()
	var slowestSubscriber *Subscriber
	most := 0
	for _, s := range subscribers {
		if size := s.waitingSize(); size > most {
			slowestSubscriber, most = s, size
		}
	}
	if slowestSubscriber == nil {
		return false
	}
	slowestSubscriber.mu.Lock()
	defer slowestSubscriber.mu.Unlock()
	if !slowestSubscriber.closed {
		h.backlog.disconnects.Add(1)
		slowestSubscriber.disconnect()
	}
	return true
}

// waitingSize returns the size of the waiting messages; 0 for a disconnected subscriber.
func (s *Subscriber) waitingSize() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	return s.size
}

// dropWaiting removes the waiting messages, except the messages that are being written. The caller
// holds mu.
func (s *Subscriber) dropWaiting() {
	for _, p := range s.queue {
		s.hub.backlog.leave(&p.queueCounter, p.memory())
	}
	for _, m := range s.inbox {
		s.hub.backlog.leave(&m.queueCounter, m.size())
	}
	s.queue, s.inbox = nil, nil
}

// releaseWritten removes the messages that were being written. The caller holds mu.
func (s *Subscriber) releaseWritten() {
	for _, p := range s.writeBatch {
		s.hub.backlog.leave(&p.queueCounter, p.memory())
		s.size -= p.size()
	}
	s.writeBatch = nil
}
