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

// Redis' client-output-buffer-limit for subscribers, in bytes.
const (
	hardLimit = 32 << 20
	softLimit = 8 << 20
	softTime  = 60 * time.Second
	// atOnce is about how much is written together, in bytes.
	atOnce = 64 << 10
)

// Line is the way to a client.
type Line interface {
	// WriteMessages writes what take gives, between two replies: nothing is written meanwhile.
	WriteMessages(take func() []byte) error
	// Cut ends the client's connection. It does not wait.
	Cut()
}

// Subscriber is one client. Its methods are for the goroutine that runs the client's commands, but
// for Any.
type Subscriber struct {
	hub    *Hub
	line   Line
	member *quorum.Membership // nil: it is not subscribed to anything
	names  [kinds]map[string]bool
	total  atomic.Int64
	kept   atomic.Int64 // bytes of the names

	// matching is held while messages are compared with patterns, which are names[Patterns]; nil
	// stands for one that is compiled when it is needed. It is taken before the Hub's mu, and that
	// before mu.
	matching sync.Mutex
	patterns map[string]*keys.Pattern

	mu sync.Mutex
	// inbox are the messages that are still to be compared, in their order; sorting is set while a
	// goroutine does so.
	inbox   []incoming
	sorting bool
	// queue are the messages on their way, but for those that are being written; size is what all
	// of them count.
	queue, writing []*packet
	size           int
	// full is since when size is over the soft limit.
	full   time.Time
	proto  int
	held   bool // nothing is written now
	closed bool
	// running is set while the Subscriber's goroutine runs.
	running bool
	tasks   sync.WaitGroup
}

// incoming is a message that has come; exact is set where the client is subscribed to its channel.
type incoming struct {
	*arrival
	exact bool
}

// Subscriber makes one, which is subscribed to nothing, of a client that speaks a protocol. It is
// to be closed.
func (h *Hub) Subscriber(line Line, proto int) *Subscriber {
	s := &Subscriber{hub: h, line: line, proto: proto, patterns: map[string]*keys.Pattern{}}
	for i := range s.names {
		s.names[i] = map[string]bool{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[s] = true
	return s
}

// Any reports whether the client is subscribed to anything. Any goroutine may call it; a nil
// Subscriber is not.
func (s *Subscriber) Any() bool { return s != nil && s.total.Load() > 0 }

// nameSize is what a subscription takes beside its name, in bytes.
const nameSize = 256

// Kept returns how many bytes the names take to which the client is subscribed; a nil Subscriber
// has none.
func (s *Subscriber) Kept() int {
	if s == nil {
		return 0
	}
	return int(s.kept.Load())
}

// Count is what Redis returns with a confirmation: to how many shards' channels, or channels and
// patterns, it is subscribed.
func (s *Subscriber) Count(kind Kind) int {
	switch {
	case s == nil:
		return 0
	case kind == Shards:
		return len(s.names[Shards])
	}
	return len(s.names[Channels]) + len(s.names[Patterns])
}

// Names are those of a kind to which it is subscribed.
func (s *Subscriber) Names(kind Kind) []string {
	if s == nil {
		return nil
	}
	return slices.Collect(maps.Keys(s.names[kind]))
}

// Listen has the masters be listened to, before the client is subscribed.
//
// Errors: those of quorum.Messages.Listen.
func (s *Subscriber) Listen(ctx context.Context) error {
	if s.member != nil {
		return nil
	}
	member, err := s.hub.carrier.Listen(ctx, s.line.Cut)
	if err == nil {
		s.member = member
	}
	return err
}

// Add has it subscribed.
func (s *Subscriber) Add(kind Kind, name string) {
	s.matching.Lock()
	defer s.matching.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.names[kind][name] {
		return
	}
	s.names[kind][name] = true
	s.total.Add(1)
	s.kept.Add(nameSize + int64(len(name)))
	s.hub.add(kind, name, s)
	if kind == Patterns {
		s.patterns[name] = s.hub.compiled[name]
	}
}

// Remove has it not subscribed.
func (s *Subscriber) Remove(kind Kind, name string) {
	if s == nil {
		return
	}
	s.matching.Lock()
	defer s.matching.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.names[kind][name] {
		delete(s.names[kind], name)
		if kind == Patterns {
			delete(s.patterns, name)
		}
		s.total.Add(-1)
		s.kept.Add(-nameSize - int64(len(name)))
		s.hub.remove(kind, name, s)
	}
}

// Settle is to be called after the last Remove: what is subscribed to nothing does not listen.
func (s *Subscriber) Settle() {
	if s != nil && s.member != nil && !s.Any() {
		s.member.Leave()
		s.member = nil
	}
}

// Clear has it subscribed to nothing.
func (s *Subscriber) Clear() {
	if s == nil {
		return
	}
	for kind := range kinds {
		for _, name := range s.Names(kind) {
			s.Remove(kind, name)
		}
	}
	s.Settle()
}

// put has a message be written, soon, if it is for the client: exact is set where it is subscribed
// to the channel. The Hub's mu is held.
func (s *Subscriber) put(a *arrival, exact bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case exact && len(s.names[Patterns]) == 0 && len(s.inbox) == 0:
		s.enqueue(a.plain())
	default:
		s.inbox = append(s.inbox, incoming{a, exact})
		s.hub.backlog.enter(&a.shared, a.size())
		if s.count(a.size()) && !s.sorting {
			s.sorting = true
			s.tasks.Go(s.sort)
		}
	}
}

// sort compares messages with the client's patterns as long as there are some.
func (s *Subscriber) sort() {
	for s.sortOne() {
	}
}

// sortOne compares the next message with the client's patterns, and has it be written if it is for
// the client.
func (s *Subscriber) sortOne() bool {
	s.matching.Lock()
	defer s.matching.Unlock()
	s.mu.Lock()
	s.sorting = !s.closed && len(s.inbox) > 0
	if !s.sorting {
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
		s.cut() // it would miss the message
		return false
	}
	s.inbox[0] = incoming{} // which is not kept
	if s.inbox = s.inbox[1:]; len(s.inbox) == 0 {
		s.inbox = nil
	}
	s.size -= next.size()
	s.hub.backlog.leave(&next.shared, next.size())
	for _, p := range packets {
		if !s.closed {
			s.enqueue(p)
		}
	}
	return true
}

// packets are those that a message is for the client. It is called with matching held.
func (s *Subscriber) packets(m incoming) (packets []*packet, err error) {
	if m.exact {
		packets = append(packets, m.plain())
	}
	if m.message.Shard {
		return packets, nil
	}
	for name, pattern := range s.patterns {
		if pattern == nil {
			pattern = keys.Compile(name)
		}
		fits, err := pattern.Match(m.message.Channel)
		switch {
		case err != nil:
			return nil, err
		case fits:
			packets = append(packets, m.by(name))
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

// enqueue has a message be written, soon. It is called with mu held.
func (s *Subscriber) enqueue(p *packet) {
	s.queue = append(s.queue, p)
	s.hub.backlog.enter(&p.shared, p.memory())
	if s.count(p.size()) {
		s.kick()
	}
}

// count adds what waits, and cuts the client off if that is too much. It is called with mu held.
func (s *Subscriber) count(size int) bool {
	s.size += size
	s.hub.relieve()
	if s.isOver(time.Now()) {
		s.cut()
	}
	return !s.closed
}

// cut ends a client that would miss messages. It is called with mu held.
func (s *Subscriber) cut() {
	s.closed = true
	s.drop()
	s.line.Cut()
}

// isOver reports whether more waits than may. It is called with mu held.
func (s *Subscriber) isOver(now time.Time) bool {
	switch {
	case s.size <= softLimit:
		s.full = time.Time{}
	case s.full.IsZero():
		s.full = now
	}
	return s.size > hardLimit || !s.full.IsZero() && now.Sub(s.full) > softTime
}

// kick has messages be written. It is called with mu held.
func (s *Subscriber) kick() {
	if !s.running && !s.held && !s.closed && len(s.queue) > 0 {
		s.running = true
		s.tasks.Go(s.run)
	}
}

// run writes messages as long as there are some.
func (s *Subscriber) run() {
	for {
		more := false
		err := s.line.WriteMessages(func() (out []byte) {
			out, more = s.next()
			return out
		})
		if err != nil {
			s.line.Cut() // it may have got a part
		}
		if err != nil || !more {
			return
		}
	}
}

// next is what is to be written next, as what was to be is written; it is not to be changed.
// Without more the goroutine ends.
func (s *Subscriber) next() (out []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote()
	if s.held || s.closed || len(s.queue) == 0 {
		s.running = false
		return nil, false
	}
	n := 0
	if form := s.queue[0].form(s.proto); len(form) >= atOnce {
		out, n = form, 1 // no copy of it for each subscriber
	}
	for n < len(s.queue) && len(out) < atOnce {
		out = append(out, s.queue[n].form(s.proto)...)
		n++
	}
	s.writing = slices.Clone(s.queue[:n])
	left := copy(s.queue, s.queue[n:])
	clear(s.queue[left:])
	if s.queue = s.queue[:left]; left == 0 {
		s.queue = nil
	}
	return out, true
}

// Take gives the messages that have come, to go before what the client is answered next, and holds
// back all others until Release.
func (s *Subscriber) Take() (out []byte) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.held = true
	come := len(s.inbox)
	s.mu.Unlock()
	for come > 0 && s.sortOne() {
		come--
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.queue {
		out = append(out, p.form(s.proto)...)
		s.size -= p.size()
		s.hub.backlog.leave(&p.shared, p.memory())
	}
	s.queue = nil
	return out
}

// Speak has the client be written to in a protocol, 2 or 3. It is called between Take and Release.
func (s *Subscriber) Speak(proto int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proto = proto
}

// Release ends what Take began.
func (s *Subscriber) Release() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
	s.kick()
}

// Close has it subscribed to nothing, and waits until nothing is written any more.
func (s *Subscriber) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.drop()
	s.mu.Unlock()
	s.Clear()
	s.tasks.Wait()
	s.mu.Lock()
	s.wrote()
	s.mu.Unlock()
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.all, s)
}
