package subscribers

import (
	"context"
	"sync"

	"redlock-proxy/commands/keys"
	"redlock-proxy/quorum"
)

// Carrier carries messages between proxies; *quorum.Messages is one.
type Carrier interface {
	// Publish returns when a majority of the masters has the message; others is how many other proxies listen.
	Publish(ctx context.Context, m quorum.Message, last *uint64) (others int, err error)
	// Listen has messages be delivered, until one leaves. lost is called if one may be missed.
	Listen(ctx context.Context, lost func()) (*quorum.Membership, error)
}

// Hub is what the subscribers of a process have in common. It is safe for concurrent use.
type Hub struct {
	carrier Carrier

	mu   sync.Mutex
	subs [kinds]map[string]map[*Subscriber]bool
}

// New makes a Hub. carry gives what carries messages, and has it deliver those of others.
func New(carry func(deliver func(quorum.Message)) Carrier) *Hub {
	h := &Hub{}
	for i := range h.subs {
		h.subs[i] = map[string]map[*Subscriber]bool{}
	}
	h.carrier = carry(h.deliver)
	return h
}

// Publish publishes a message of a client, whose last one last points to, and tells how many get it: the clients of this proxy, and one for each
// other proxy that listens to anything.
//
// Errors: those of quorum.Messages.Publish.
func (h *Hub) Publish(ctx context.Context, m quorum.Message, last *uint64) (receivers int, err error) {
	others, err := h.carrier.Publish(ctx, m, last)
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.each(m, func(*string, map[*Subscriber]bool) {}) + others, nil
}

// each gives those who get a message, with the pattern if it is by one, and counts them. It is called with mu held.
func (h *Hub) each(m quorum.Message, give func(pattern *string, to map[*Subscriber]bool)) (n int) {
	kind := Channels
	if m.Shard {
		kind = Shards
	}
	if to := h.subs[kind][m.Channel]; len(to) > 0 {
		n = len(to)
		give(nil, to)
	}
	if m.Shard {
		return n
	}
	for pattern, to := range h.subs[Patterns] {
		if keys.Match(pattern, m.Channel) {
			n += len(to)
			give(&pattern, to)
		}
	}
	return n
}

// deliver gives a message to those who are to get it.
func (h *Hub) deliver(m quorum.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(m, func(pattern *string, to map[*Subscriber]bool) {
		words := []string{"message", m.Channel, m.Payload}
		switch {
		case m.Shard:
			words[0] = "smessage"
		case pattern != nil:
			words = []string{"pmessage", *pattern, m.Channel, m.Payload}
		}
		p := &packet{words: words}
		for s := range to {
			s.put(p)
		}
	})
}

// Count is how many clients of this proxy are subscribed to a channel or pattern.
func (h *Hub) Count(kind Kind, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind][name])
}

// Names are the channels or patterns to which clients of this proxy are subscribed, and that match a glob.
func (h *Hub) Names(kind Kind, glob string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := []string{}
	for name := range h.subs[kind] {
		if keys.Match(glob, name) {
			all = append(all, name)
		}
	}
	return all
}

// add has a client subscribed. It is called with mu held.
func (h *Hub) add(kind Kind, name string, s *Subscriber) {
	to := h.subs[kind][name]
	if to == nil {
		to = map[*Subscriber]bool{}
		h.subs[kind][name] = to
	}
	to[s] = true
}

// remove has a client not subscribed. It is called with mu held.
func (h *Hub) remove(kind Kind, name string, s *Subscriber) {
	to := h.subs[kind][name]
	delete(to, s)
	if len(to) == 0 {
		delete(h.subs[kind], name)
	}
}
