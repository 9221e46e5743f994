package pubsub

import (
	"context"
	"maps"
	"slices"
	"sync"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// Carrier carries messages between proxies, as *quorum.Messages does.
type Carrier interface {
	// Publish returns when a majority of the masters has the message. others counts the other
	// proxies that listen.
	Publish(ctx context.Context, m quorum.Message, last *uint64) (others int, err error)
	// Listen starts the delivery of messages, until Leave of the membership. lost is called if a
	// message may be missed.
	Listen(ctx context.Context, lost func()) (*quorum.Membership, error)
}

// Hub holds the subscriptions of all clients of a process. It is safe for concurrent use.
type Hub struct {
	carrier Carrier
	backlog backlog

	mu   sync.Mutex
	all  map[*Subscriber]bool
	subs [kinds]map[string]map[*Subscriber]bool
	// compiled holds the compiled patterns of subs, except long ones. matching holds the
	// subscribers to any pattern.
	compiled map[string]*keys.Pattern
	matching map[*Subscriber]bool
}

// New returns a Hub. carry returns the carrier, which passes each message to deliver.
func New(carry func(deliver func(quorum.Message)) Carrier) *Hub {
	h := &Hub{all: map[*Subscriber]bool{}, compiled: map[string]*keys.Pattern{}, matching: map[*Subscriber]bool{}}
	for i := range h.subs {
		h.subs[i] = map[string]map[*Subscriber]bool{}
	}
	h.backlog.limit.Store(DefaultBacklog)
	h.carrier = carry(h.deliver)
	return h
}

// Publish publishes a message of a client. last points to the number of the client's last message.
// receivers counts the clients of this proxy that get the message, plus one for each other proxy
// with any subscriber.
//
// Errors: those of quorum.Messages.Publish.
func (h *Hub) Publish(ctx context.Context, m quorum.Message, last *uint64) (receivers int, err error) {
	others, err := h.carrier.Publish(ctx, m, last)
	if err != nil {
		return 0, err
	}
	receivers, patterns := h.countReceivers(m)
	for _, p := range patterns {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if fits, _ := p.pattern.Match(m.Channel); fits {
			receivers += p.subscribers
		}
	}
	return receivers + others, nil
}

// patternCount is a pattern with the number of its subscribers.
type patternCount struct {
	pattern     *keys.Pattern
	subscribers int
}

// countReceivers returns how many clients are subscribed to the channel of a message, and the
// patterns that are still to be compared with it.
func (h *Hub) countReceivers(m quorum.Message) (n int, patterns []patternCount) {
	h.mu.Lock()
	n = len(h.subs[kindOf(m)][m.Channel])
	var long []string
	var subscribersOfLong []int
	if !m.Shard {
		patterns = make([]patternCount, 0, len(h.compiled))
		for name, to := range h.subs[Patterns] {
			if p := h.compiled[name]; p != nil {
				patterns = append(patterns, patternCount{p, len(to)})
				continue
			}
			long, subscribersOfLong = append(long, name), append(subscribersOfLong, len(to))
		}
	}
	h.mu.Unlock()
	for i, name := range long {
		patterns = append(patterns, patternCount{keys.Compile(name), subscribersOfLong[i]})
	}
	return n, patterns
}

// kindOf returns the kind of a message's channel.
func kindOf(m quorum.Message) Kind {
	if m.Shard {
		return Shards
	}
	return Channels
}

// deliver passes a message to its subscribers, and to all that have patterns to compare.
func (h *Hub) deliver(m quorum.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &arrival{message: m}
	to := h.subs[kindOf(m)][m.Channel]
	for s := range to {
		s.accept(a, true)
	}
	if m.Shard {
		return
	}
	for s := range h.matching {
		if !to[s] {
			s.accept(a, false)
		}
	}
}

// Count returns how many clients of this proxy are subscribed to a channel or pattern.
func (h *Hub) Count(kind Kind, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind][name])
}

// Total returns how many channels or patterns clients of this proxy are subscribed to.
func (h *Hub) Total(kind Kind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind])
}

// Names returns the channels or patterns that match a glob and have a subscriber at this proxy.
//
// Errors: keys.ErrTooComplex.
func (h *Hub) Names(kind Kind, glob string) ([]string, error) {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.subs[kind]))
	h.mu.Unlock()
	fitting, pattern := []string{}, keys.Compile(glob)
	for _, name := range all {
		if fits, err := pattern.Match(name); err != nil {
			return nil, err
		} else if fits {
			fitting = append(fitting, name)
		}
	}
	return fitting, nil
}

// longPattern is the length from which a pattern is compiled for each use instead of once, because
// a compiled pattern takes many times its size.
const longPattern = 1 << 10

// add adds a subscription. The caller holds mu.
func (h *Hub) add(kind Kind, name string, s *Subscriber) {
	to := h.subs[kind][name]
	if to == nil {
		to = map[*Subscriber]bool{}
		h.subs[kind][name] = to
		if kind == Patterns && len(name) < longPattern {
			h.compiled[name] = keys.Compile(name)
		}
	}
	to[s] = true
	if kind == Patterns {
		h.matching[s] = true
	}
}

// remove removes a subscription. The caller holds mu.
func (h *Hub) remove(kind Kind, name string, s *Subscriber) {
	to := h.subs[kind][name]
	delete(to, s)
	if len(to) == 0 {
		delete(h.subs[kind], name)
		if kind == Patterns {
			delete(h.compiled, name)
		}
	}
	if len(s.names[Patterns]) == 0 {
		delete(h.matching, s)
	}
}
