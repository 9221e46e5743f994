package pubsub

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// The limits are Redis' client-output-buffer-limit for subscribers. Sizes are in bytes.
const (
	hardLimit = 32 << 20
	softLimit = 8 << 20
	softTime  = 60 * time.Second
	// writeSize is the approximate size of one write, in bytes.
	writeSize = 64 << 10
)

// ClientWriter writes to a client.
type ClientWriter interface {
	// WriteMessages writes the result of take between two replies. No other write runs meanwhile.
	WriteMessages(take func() []byte) error
	// Disconnect closes the client's connection. It does not wait.
	Disconnect()
}

// Subscriber holds the subscriptions of a client, and the messages that the client has not
// received yet. Its methods are for the goroutine that runs the client's commands. Any goroutine
// may call HasSubscriptions.
type Subscriber struct {
	hub               *Hub
	writer            ClientWriter
	subscription      *quorum.Subscription // nil without subscriptions
	names             [kindCount]map[string]bool
	subscriptionCount atomic.Int64
	namesSize         atomic.Int64 // size of the names and compiled patterns in bytes

	// A goroutine holds matchMu while it compares messages with patterns. patterns holds the
	// compiled names[Patterns]. The lock order is matchMu, the Hub's mu, mu.
	matchMu  sync.Mutex
	patterns map[string]*keys.Pattern

	mu sync.Mutex
	// inbox holds the messages that have not been compared with the patterns yet, in order.
	// matching is set while a goroutine compares them.
	inbox    []inboxEntry
	matching bool
	// queue holds the messages to write, and writeBatch the messages that are being written. size
	// is the size of all messages in inbox, queue and writeBatch.
	queue, writeBatch []*packet
	size              int
	// aboveLimitSince is the time since which size has been above the soft limit.
	aboveLimitSince time.Time
	proto           int
	suspended       bool // between Take and Release
	closed          bool
	// running is set while the goroutine that writes is running.
	running bool
	tasks   sync.WaitGroup
}

// inboxEntry holds a message. byChannel is set if the client is subscribed to its channel.
type inboxEntry struct {
	*arrivedMessage
	byChannel bool
}

// NewSubscriber returns a Subscriber without subscriptions. The caller must close it.
func (h *Hub) NewSubscriber(writer ClientWriter, proto int) *Subscriber {
	s := &Subscriber{hub: h, writer: writer, proto: proto, patterns: map[string]*keys.Pattern{}}
	for i := range s.names {
		s.names[i] = map[string]bool{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribers[s] = true
	return s
}

// HasSubscriptions reports whether there is a subscription. Any goroutine may call it, also on nil.
func (s *Subscriber) HasSubscriptions() bool { return s != nil && s.subscriptionCount.Load() > 0 }

// sizeOf returns the size of a subscription that exists, in bytes. Subscribers share the compiled
// form of a pattern, but it counts for each of them.
func (s *Subscriber) sizeOf(kind Kind, name string) int64 {
	const overhead = 256
	if kind == Patterns {
		return overhead + int64(len(name)+s.patterns[name].Size())
	}
	return overhead + int64(len(name))
}

// Size returns the size of the subscriptions, in bytes. It returns 0 for a nil Subscriber.
func (s *Subscriber) Size() int {
	if s == nil {
		return 0
	}
	return int(s.namesSize.Load())
}

// Count returns the number of subscriptions that a confirmation shows. As in Redis, it counts shard
// channels separately from channels and patterns.
func (s *Subscriber) Count(kind Kind) int {
	switch {
	case s == nil:
		return 0
	case kind == Shards:
		return len(s.names[Shards])
	}
	return len(s.names[Channels]) + len(s.names[Patterns])
}

// Names returns the subscriptions of a kind.
func (s *Subscriber) Names(kind Kind) []string {
	if s == nil {
		return nil
	}
	return slices.Collect(maps.Keys(s.names[kind]))
}

// Listen makes the proxy listen to the masters. It must precede the first Add.
//
// The errors are those of quorum.Messages.Listen.
func (s *Subscriber) Listen(ctx context.Context) error {
	if s.subscription != nil {
		return nil
	}
	member, err := s.hub.carrier.Listen(ctx, s.writer.Disconnect)
	if err == nil {
		s.subscription = member
	}
	return err
}

// Add adds a subscription.
func (s *Subscriber) Add(kind Kind, name string) {
	s.matchMu.Lock()
	defer s.matchMu.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.names[kind][name] {
		return
	}
	s.names[kind][name] = true
	s.subscriptionCount.Add(1)
	s.hub.add(kind, name, s)
	if kind == Patterns {
		s.patterns[name] = s.hub.compiledPatterns[name]
	}
	s.namesSize.Add(s.sizeOf(kind, name))
}

// Remove removes a subscription.
func (s *Subscriber) Remove(kind Kind, name string) {
	if s == nil {
		return
	}
	s.matchMu.Lock()
	defer s.matchMu.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.names[kind][name] {
		s.namesSize.Add(-s.sizeOf(kind, name))
		delete(s.names[kind], name)
		if kind == Patterns {
			delete(s.patterns, name)
		}
		s.subscriptionCount.Add(-1)
		s.hub.remove(kind, name, s)
	}
}

// StopIfUnused stops listening if no subscription remains. It must follow the last Remove.
func (s *Subscriber) StopIfUnused() {
	if s != nil && s.subscription != nil && !s.HasSubscriptions() {
		s.subscription.Leave()
		s.subscription = nil
	}
}

// Clear removes all subscriptions.
func (s *Subscriber) Clear() {
	if s == nil {
		return
	}
	for kind := range kindCount {
		for _, name := range s.Names(kind) {
			s.Remove(kind, name)
		}
	}
	s.StopIfUnused()
}

// accept takes a message, and writes it soon if the client is subscribed to it. byChannel is set if
// the client is subscribed to the channel itself. The caller holds the Hub's mu.
func (s *Subscriber) accept(a *arrivedMessage, byChannel bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case byChannel && len(s.names[Patterns]) == 0 && len(s.inbox) == 0:
		s.enqueue(a.channelPacket())
	default:
		s.inbox = append(s.inbox, inboxEntry{a, byChannel})
		s.hub.backlog.enter(&a.queueCounter, a.size())
		if s.addSize(a.size()) && !s.matching {
			s.matching = true
			s.tasks.Go(s.matchInbox)
		}
	}
}

// matchInbox compares the waiting messages with the client's patterns until no message waits.
func (s *Subscriber) matchInbox() {
	for s.matchNext() {
	}
}

// matchNext compares the next message with the client's patterns, and queues the message if the
// client is subscribed to it. It returns false if no message was left, or if the client is
// disconnected.
func (s *Subscriber) matchNext() bool {
	s.matchMu.Lock()
	defer s.matchMu.Unlock()
	s.mu.Lock()
	s.matching = !s.closed && len(s.inbox) > 0
	if !s.matching {
		s.mu.Unlock()
		return false
	}
	next := s.inbox[0]
	s.mu.Unlock()
	packets, err := s.packets(next)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false
	case err != nil:
		s.disconnect() // the client would miss the message
		return false
	}
	s.inbox[0] = inboxEntry{} // releases the message
	if s.inbox = s.inbox[1:]; len(s.inbox) == 0 {
		s.inbox = nil
	}
	s.size -= next.size()
	s.hub.backlog.leave(&next.queueCounter, next.size())
	for _, p := range packets {
		if !s.closed {
			s.enqueue(p)
		}
	}
	return true
}

// packets returns the packets of a message for the client. The caller holds matchMu.
func (s *Subscriber) packets(m inboxEntry) (packets []*packet, err error) {
	if m.byChannel {
		packets = append(packets, m.channelPacket())
	}
	if m.message.Shard {
		return packets, nil
	}
	for name, pattern := range s.patterns {
		matches, err := pattern.Match(m.message.Channel)
		switch {
		case err != nil:
			return nil, err
		case matches:
			packets = append(packets, m.patternPacket(name))
		}
		if s.isClosed() {
			return nil, nil
		}
	}
	return packets, nil
}

func (s *Subscriber) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// enqueue queues a message. The caller holds mu.
func (s *Subscriber) enqueue(p *packet) {
	s.queue = append(s.queue, p)
	s.hub.backlog.enter(&p.queueCounter, p.memory())
	if s.addSize(p.size()) {
		s.startWriter()
	}
}

// addSize adds the size of a message, and disconnects the client if the sum is above the limit. It
// reports whether the client is still connected. The caller holds mu.
func (s *Subscriber) addSize(size int) bool {
	s.size += size
	s.hub.disconnectSlowest()
	if s.isAboveLimit(time.Now()) {
		s.disconnect()
	}
	return !s.closed
}

// disconnect disconnects a client that would miss messages. The caller holds mu.
func (s *Subscriber) disconnect() {
	s.closed = true
	s.dropWaiting()
	s.writer.Disconnect()
}

// isAboveLimit reports whether the size is above the limit. The caller holds mu.
func (s *Subscriber) isAboveLimit(now time.Time) bool {
	switch {
	case s.size <= softLimit:
		s.aboveLimitSince = time.Time{}
	case s.aboveLimitSince.IsZero():
		s.aboveLimitSince = now
	}
	return s.size > hardLimit || !s.aboveLimitSince.IsZero() && now.Sub(s.aboveLimitSince) > softTime
}

// startWriter starts the goroutine that writes, if it is needed. The caller holds mu.
func (s *Subscriber) startWriter() {
	if !s.running && !s.suspended && !s.closed && len(s.queue) > 0 {
		s.running = true
		s.tasks.Go(s.writeQueue)
	}
}

// writeQueue writes the queued messages until there are none.
func (s *Subscriber) writeQueue() {
	for {
		more := false
		err := s.writer.WriteMessages(func() (out []byte) {
			out, more = s.next()
			return out
		})
		if err != nil {
			s.writer.Disconnect() // the client may have got a part of a message
		}
		if err != nil || !more {
			return
		}
	}
}

// next returns the next bytes to write, after the previous bytes were written. The caller must not
// modify the returned bytes. If more is false, the goroutine that writes must end.
func (s *Subscriber) next() (out []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseWritten()
	if s.suspended || s.closed || len(s.queue) == 0 {
		s.running = false
		return nil, false
	}
	n := 0
	if encoded := s.queue[0].encode(s.proto); len(encoded) >= writeSize {
		out, n = encoded, 1 // avoids a copy for each subscriber
	}
	for n < len(s.queue) && len(out) < writeSize {
		out = append(out, s.queue[n].encode(s.proto)...)
		n++
	}
	s.writeBatch = slices.Clone(s.queue[:n])
	left := copy(s.queue, s.queue[n:])
	clear(s.queue[left:])
	if s.queue = s.queue[:left]; left == 0 {
		s.queue = nil
	}
	return out, true
}

// Take returns the messages that have arrived, which precede the next reply. It delays later
// messages until Release.
func (s *Subscriber) Take() (out []byte) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.suspended = true
	arrived := len(s.inbox)
	s.mu.Unlock()
	for arrived > 0 && s.matchNext() {
		arrived--
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.queue {
		out = append(out, p.encode(s.proto)...)
		s.size -= p.size()
		s.hub.backlog.leave(&p.queueCounter, p.memory())
	}
	s.queue = nil
	return out
}

// SetProto sets the protocol of messages, 2 or 3. It must be called between Take and Release.
func (s *Subscriber) SetProto(proto int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proto = proto
}

// Release resumes the delivery of messages after Take.
func (s *Subscriber) Release() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = false
	s.startWriter()
}

// Close removes all subscriptions, and waits until no write is running.
func (s *Subscriber) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.dropWaiting()
	s.mu.Unlock()
	s.Clear()
	s.tasks.Wait()
	s.mu.Lock()
	s.releaseWritten()
	s.mu.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscribers, s)
}
