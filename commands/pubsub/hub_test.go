package pubsub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/quorum"
)

// alone is a Carrier for a single proxy.
type alone struct{ deliver func(quorum.Message) }

func (a alone) Publish(_ context.Context, m quorum.Message, _ *uint64) (int, error) {
	a.deliver(m)
	return 0, nil
}

func (alone) Listen(context.Context, func()) (*quorum.Membership, error) { return nil, nil }

func newHub() *Hub {
	return New(func(deliver func(quorum.Message)) Carrier { return alone{deliver} })
}

// reader is the client's end of a Line.
type reader struct {
	mu    sync.Mutex
	got   []byte
	cuts  int
	comes chan struct{}
}

func newReader() *reader { return &reader{comes: make(chan struct{}, 1)} }

func (r *reader) WriteMessages(take func() []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got = append(r.got, take()...); len(r.got) > 0 {
		select {
		case r.comes <- struct{}{}:
		default:
		}
	}
	return nil
}

func (r *reader) Disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cuts++
}

func (s *Subscriber) unsorted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox)
}

// TestSlowPatternsDelayNoOtherClient checks that slow patterns delay only their own client.
func TestSlowPatternsDelayNoOtherClient(t *testing.T) {
	h := newHub()
	hostile, honest := h.Subscriber(newReader(), 2), newReader()
	defer hostile.Close()
	other := h.Subscriber(honest, 2)
	defer other.Close()
	for i := range 500 {
		hostile.Add(Patterns, "*"+strings.Repeat("[a]", 60)+strings.Repeat("?", i%3)+string(rune(1000+i))+"*")
	}
	other.Add(Channels, "news")
	h.deliver(quorum.Message{Channel: strings.Repeat("a", 1<<20)})
	if n, err := h.Publish(t.Context(), quorum.Message{Channel: "news", Payload: "x"}, new(uint64)); n != 1 ||
		err != nil {
		t.Errorf("%d receivers, %v", n, err)
	}
	<-honest.comes
	if hostile.unsorted() == 0 {
		t.Error("the message came when all patterns had been compared")
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := h.Publish(ctx, quorum.Message{Channel: strings.Repeat("a", 1<<20)}, new(uint64)); err == nil {
		t.Error("a client that has left is still counting")
	}
}

// TestMessagesByPatternAndChannel checks that messages come in order, before the next reply.
func TestMessagesByPatternAndChannel(t *testing.T) {
	h := newHub()
	s := h.Subscriber(newReader(), 2)
	defer s.Close()
	s.Add(Channels, "a1")
	s.Add(Patterns, "a*")
	s.Add(Shards, "a1")
	s.Add(Patterns, "*"+strings.Repeat("?", longPattern))
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
	s = h.Subscriber(r, 2)
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

// TestPatternTooComplex checks that a client is disconnected if a message takes too many
// comparisons, because it would miss the message.
func TestPatternTooComplex(t *testing.T) {
	h := newHub()
	r := newReader()
	s := h.Subscriber(r, 2)
	s.Add(Patterns, "*"+strings.Repeat("?", 2000)+"b*")
	h.deliver(quorum.Message{Channel: strings.Repeat("a", 1<<20)})
	s.Take()
	s.Close()
	if r.cuts != 1 {
		t.Errorf("cut %d times", r.cuts)
	}
}

// stuck is the Line of a client that reads nothing until it is disconnected.
type stuck struct {
	gone chan struct{}
	once sync.Once
}

func (l *stuck) WriteMessages(take func() []byte) error {
	if len(take()) > 0 {
		<-l.gone
		return errors.New("cut off")
	}
	return nil
}

func (l *stuck) Disconnect() { l.once.Do(func() { close(l.gone) }) }

// TestBacklogIsBounded checks that a message that waits for several clients counts once. Beyond the
// limit, the client with the most waiting messages is disconnected, and a client that reads is not.
func TestBacklogIsBounded(t *testing.T) {
	h := newHub()
	line := func() *stuck { return &stuck{gone: make(chan struct{})} }
	one, most, r := line(), line(), newReader()
	all := []*Subscriber{h.Subscriber(one, 2), h.Subscriber(most, 2), h.Subscriber(r, 3)}
	for _, s := range all {
		s.Add(Channels, "news")
	}
	all[1].Add(Channels, "more")
	send := func(channel string, n int) {
		for range n {
			h.deliver(quorum.Message{Channel: channel, Payload: strings.Repeat("x", 10_000)})
		}
	}
	send("news", 100)
	if bytes, cuts := h.Backlog(); bytes > 2*100*11_000 || cuts != 0 {
		t.Errorf("%d bytes wait, %d were cut off", bytes, cuts)
	}
	for all[2].waiting() > 0 {
		<-r.comes
	}
	send("more", 20)
	h.SetBacklog(2 * 110 * 10_000)
	<-most.gone
	send("news", 15)
	<-one.gone
	for _, s := range all {
		s.Close()
	}
	if bytes, cuts := h.Backlog(); bytes != 0 || cuts != 2 || r.cuts != 0 {
		t.Errorf("%d bytes wait, %d were cut off, and who reads %d times", bytes, cuts, r.cuts)
	}
}
