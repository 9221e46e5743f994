package pubsub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/quorum"
)

// singleProxy implements Carrier for a single proxy.
type singleProxy struct{ deliver func(quorum.Message) }

func (a singleProxy) Publish(_ context.Context, m quorum.Message, _ *uint64) (int, error) {
	a.deliver(m)
	return 0, nil
}

func (singleProxy) Listen(context.Context, func()) (*quorum.Subscription, error) { return nil, nil }

func newHub() *Hub {
	return New(func(deliver func(quorum.Message)) Carrier { return singleProxy{deliver} })
}

// reader implements ClientWriter for a client that reads all messages.
type reader struct {
	mu            sync.Mutex
	output        []byte
	disconnects   int
	receiveSignal chan struct{}
}

func newReader() *reader { return &reader{receiveSignal: make(chan struct{}, 1)} }

func (r *reader) WriteMessages(take func() []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.output = append(r.output, take()...); len(r.output) > 0 {
		select {
		case r.receiveSignal <- struct{}{}:
		default:
		}
	}
	return nil
}

func (r *reader) Disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disconnects++
}

func (s *Subscriber) inboxLen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox)
}

// TestDelayBySlowPatterns checks that slow patterns delay only their own client.
func TestDelayBySlowPatterns(t *testing.T) {
	h := newHub()
	slow, fastReader := h.NewSubscriber(newReader(), 2), newReader()
	defer slow.Close()
	fast := h.NewSubscriber(fastReader, 2)
	defer fast.Close()
	for i := range 500 {
		slow.Add(Patterns, "*"+strings.Repeat("[a]", 60)+strings.Repeat("?", i%3)+string(rune(1000+i))+"*")
	}
	fast.Add(Channels, "news")
	h.deliver(quorum.Message{Channel: strings.Repeat("a", 1<<20)})
	if n, err := h.Publish(t.Context(), quorum.Message{Channel: "news", Payload: "x"}, new(uint64)); n != 1 ||
		err != nil {
		t.Errorf("%d receivers, %v", n, err)
	}
	<-fastReader.receiveSignal
	if slow.inboxLen() == 0 {
		t.Error("the message came only after all patterns were compared")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Publish(ctx, quorum.Message{Channel: strings.Repeat("a", 1<<20)}, new(uint64)); err == nil {
		t.Error("Publish does not end with its context")
	}
}

// TestMessagesByPatternAndChannel checks that messages come in order, before the next reply.
func TestMessagesByPatternAndChannel(t *testing.T) {
	h := newHub()
	s := h.NewSubscriber(newReader(), 2)
	defer s.Close()
	s.Add(Channels, "a1")
	s.Add(Patterns, "a*")
	s.Add(Shards, "a1")
	s.Add(Patterns, "*"+strings.Repeat("?", maxPattern))
	for _, m := range []quorum.Message{{Channel: "a1", Payload: "1"}, {Channel: "b", Payload: "2"},
		{Channel: "a2", Payload: "3"}, {Channel: "a1", Payload: "4", Shard: true}} {
		want := map[string]int{"1": 2, "2": 0, "3": 1, "4": 1}[m.Payload]
		if n, err := h.Publish(t.Context(), m, new(uint64)); n != want || err != nil {
			t.Errorf("%s: %d receivers, %v", m.Payload, n, err)
		}
	}
	s.Take()
	s.Remove(Patterns, "a*")
	s.Release()
	r := newReader()
	s = h.NewSubscriber(r, 2)
	s.Add(Channels, "a1")
	s.Add(Patterns, "a*")
	s.Take() // delays later messages
	for _, m := range []quorum.Message{{Channel: "a1", Payload: "1"}, {Channel: "b", Payload: "2"},
		{Channel: "a2", Payload: "3"}} {
		h.deliver(m)
	}
	words := slices.DeleteFunc(strings.Split(string(s.Take()), "\r\n"),
		func(w string) bool { return w == "" || strings.ContainsAny(w[:1], "$*") && len(w) < 4 && w != "a*" })
	if got := strings.Join(words, " "); got != "message a1 1 pmessage a* a1 1 pmessage a* a2 3" {
		t.Errorf("got %q", got)
	}
	s.Close()
}

// TestPatternTooComplex checks that the Hub disconnects a client if a message takes too many
// comparisons, because the client would miss the message.
func TestPatternTooComplex(t *testing.T) {
	h := newHub()
	r := newReader()
	s := h.NewSubscriber(r, 2)
	s.Add(Patterns, "*"+strings.Repeat("?", 2000)+"b*")
	h.deliver(quorum.Message{Channel: strings.Repeat("a", 1<<20)})
	s.Take()
	s.Close()
	if r.disconnects != 1 {
		t.Errorf("%d disconnects", r.disconnects)
	}
}

// blockedWriter implements ClientWriter for a client that reads nothing until it is disconnected.
type blockedWriter struct {
	disconnected chan struct{}
	once         sync.Once
}

func (l *blockedWriter) WriteMessages(take func() []byte) error {
	if len(take()) > 0 {
		<-l.disconnected
		return errors.New("disconnected")
	}
	return nil
}

func (l *blockedWriter) Disconnect() { l.once.Do(func() { close(l.disconnected) }) }

// TestBacklogLimit checks that a message that waits for several clients counts once. Beyond the
// limit, the Hub disconnects the client with the most waiting messages, but not a client that
// reads.
func TestBacklogLimit(t *testing.T) {
	h := newHub()
	newWriter := func() *blockedWriter { return &blockedWriter{disconnected: make(chan struct{})} }
	second, slowest, r := newWriter(), newWriter(), newReader()
	subscribers := []*Subscriber{h.NewSubscriber(second, 2), h.NewSubscriber(slowest, 2), h.NewSubscriber(r, 3)}
	for _, s := range subscribers {
		s.Add(Channels, "news")
	}
	subscribers[1].Add(Channels, "more")
	send := func(channel string, n int) {
		for range n {
			h.deliver(quorum.Message{Channel: channel, Payload: strings.Repeat("x", 10_000)})
		}
	}
	send("news", 100)
	if bytes, disconnects := h.Backlog(); bytes > 2*100*11_000 || disconnects != 0 {
		t.Errorf("%d bytes wait, %d disconnects", bytes, disconnects)
	}
	for subscribers[2].waitingSize() > 0 {
		<-r.receiveSignal
	}
	send("more", 20)
	h.SetBacklog(2 * 110 * 10_000)
	<-slowest.disconnected
	send("news", 15)
	<-second.disconnected
	for _, s := range subscribers {
		s.Close()
	}
	if bytes, disconnects := h.Backlog(); bytes != 0 || disconnects != 2 || r.disconnects != 0 {
		t.Errorf("%d bytes wait, %d disconnects, and %d of the client that reads", bytes, disconnects, r.disconnects)
	}
}

// TestSizeOfSubscriptions checks that a subscription counts with its name and its compiled pattern
// until it is removed.
func TestSizeOfSubscriptions(t *testing.T) {
	h := newHub()
	s := h.NewSubscriber(newReader(), 2)
	defer s.Close()
	for i := range 300 {
		pattern := fmt.Sprint(i)
		for c := range 200 {
			pattern += "[" + string(rune(1000+c)) + "]"
		}
		s.Add(Channels, pattern)
		named := s.Size()
		s.Add(Patterns, pattern)
		if grown := s.Size() - named; grown < len(pattern)+200*32 {
			t.Fatalf("a pattern with 200 sets counts %d bytes", grown)
		}
		if i%2 == 0 {
			s.Remove(Patterns, pattern)
		}
	}
	if s.Clear(); s.Size() != 0 {
		t.Errorf("%d bytes are left", s.Size())
	}
}
