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
	// Publish publishes a message, and waits until a majority of the masters has it. otherProxies
	// counts the other proxies that listen.
	Publish(ctx context.Context, m quorum.Message, lastNumber *uint64) (otherProxies int, err error)
	// Listen starts the delivery of messages, until the Subscription ends. The carrier calls onLoss
	// if the client may miss a message.
	Listen(ctx context.Context, onLoss func()) (*quorum.Subscription, error)
}

// Hub holds the subscriptions of all clients of a process. It is safe for concurrent use.
type Hub struct {
	carrier Carrier
	backlog backlog

	mu            sync.Mutex
	subscribers   map[*Subscriber]bool
	subscriptions [kindCount]map[string]map[*Subscriber]bool
	// compiledPatterns holds the patterns of subscriptions in compiled form. patternSubscribers
	// holds the subscribers to any pattern.
	compiledPatterns   map[string]*keys.Pattern
	patternSubscribers map[*Subscriber]bool
}

// New returns a Hub. newCarrier returns the carrier, which passes each message to deliver.
func New(newCarrier func(deliver func(quorum.Message)) Carrier) *Hub {
	h := &Hub{
		subscribers: map[*Subscriber]bool{}, compiledPatterns: map[string]*keys.Pattern{},
		patternSubscribers: map[*Subscriber]bool{},
	}
	for i := range h.subscriptions {
		h.subscriptions[i] = map[string]map[*Subscriber]bool{}
	}
	h.backlog.limit.Store(DefaultBacklog)
	h.carrier = newCarrier(h.deliver)
	return h
}

// Publish publishes a message of a client. last points to the number of the client's last message.
// receivers counts the clients of this proxy that get the message, plus one for each other proxy
// with any subscriber.
//
// The errors are those of quorum.Messages.Publish.
func (h *Hub) Publish(ctx context.Context, m quorum.Message, last *uint64) (receivers int, err error) {
	otherProxies, err := h.carrier.Publish(ctx, m, last)
	if err != nil {
		return 0, err
	}
	receivers, patterns := h.countReceivers(m)
	for _, p := range patterns {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if matches, _ := p.pattern.Match(m.Channel); matches {
			receivers += p.subscribers
		}
	}
	return receivers + otherProxies, nil
}

// patternCount holds a pattern with the number of its subscribers.
type patternCount struct {
	pattern     *keys.Pattern
	subscribers int
}

// countReceivers returns the number of clients that are subscribed to the channel of a message. It
// also returns the patterns that the caller must compare with the channel.
func (h *Hub) countReceivers(m quorum.Message) (n int, patterns []patternCount) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = len(h.subscriptions[kindOf(m)][m.Channel])
	if !m.Shard {
		patterns = make([]patternCount, 0, len(h.compiledPatterns))
		for name, to := range h.subscriptions[Patterns] {
			patterns = append(patterns, patternCount{h.compiledPatterns[name], len(to)})
		}
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

// deliver passes a message to the subscribers of its channel, and to all subscribers with patterns.
// Each subscriber with patterns compares the channel with its patterns.
func (h *Hub) deliver(m quorum.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &arrivedMessage{message: m}
	to := h.subscriptions[kindOf(m)][m.Channel]
	for s := range to {
		s.accept(a, true)
	}
	if m.Shard {
		return
	}
	for s := range h.patternSubscribers {
		if !to[s] {
			s.accept(a, false)
		}
	}
}

// Count returns the number of clients of this proxy that are subscribed to a channel or pattern.
func (h *Hub) Count(kind Kind, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscriptions[kind][name])
}

// Total returns the number of channels or patterns to which clients of this proxy are subscribed.
func (h *Hub) Total(kind Kind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subscriptions[kind])
}

// Names returns the channels or patterns that match a glob and have a subscriber at this proxy.
//
// The only error is keys.ErrTooComplex.
func (h *Hub) Names(kind Kind, glob string) ([]string, error) {
	h.mu.Lock()
	names := slices.Collect(maps.Keys(h.subscriptions[kind]))
	h.mu.Unlock()
	matching, pattern := []string{}, keys.Compile(glob)
	for _, name := range names {
		if matches, err := pattern.Match(name); err != nil {
			return nil, err
		} else if matches {
			matching = append(matching, name)
		}
	}
	return matching, nil
}

// add adds a subscription. The caller holds mu.
func (h *Hub) add(kind Kind, name string, s *Subscriber) {
	to := h.subscriptions[kind][name]
	if to == nil {
		to = map[*Subscriber]bool{}
		h.subscriptions[kind][name] = to
		if kind == Patterns {
			h.compiledPatterns[name] = keys.Compile(name)
		}
	}
	to[s] = true
	if kind == Patterns {
		h.patternSubscribers[s] = true
	}
}

// remove removes a subscription. The caller holds mu.
func (h *Hub) remove(kind Kind, name string, s *Subscriber) {
	to := h.subscriptions[kind][name]
	delete(to, s)
	if len(to) == 0 {
		delete(h.subscriptions[kind], name)
		if kind == Patterns {
			delete(h.compiledPatterns, name)
		}
	}
	if len(s.names[Patterns]) == 0 {
		delete(h.patternSubscribers, s)
	}
}
