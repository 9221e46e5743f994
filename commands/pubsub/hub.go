package pubsub

import (
	"context"
	"maps"
	"slices"
	"sync"

	"redlock-proxy/commands/catalog/keys"
	"redlock-proxy/quorum"
)

// Carrier carries messages between proxies; *quorum.Messages is one.
type Carrier interface {
	// Publish returns when a majority of the masters has the message; others is how many other
	// proxies listen.
	Publish(ctx context.Context, m quorum.Message, last *uint64) (others int, err error)
	// Listen has messages be delivered, until one leaves. lost is called if one may be missed.
	Listen(ctx context.Context, lost func()) (*quorum.Membership, error)
}

// Hub is what the subscribers of a process have in common. It is safe for concurrent use.
type Hub struct {
	carrier Carrier
	backlog backlog

	mu   sync.Mutex
	all  map[*Subscriber]bool
	subs [kinds]map[string]map[*Subscriber]bool
	// compiled are the patterns of subs, nil for a long one; matching are those who are subscribed
	// to any.
	compiled map[string]*keys.Pattern
	matching map[*Subscriber]bool
}

// New makes a Hub. carry gives what carries messages, and has it deliver those of others.
func New(carry func(deliver func(quorum.Message)) Carrier) *Hub {
	h := &Hub{all: map[*Subscriber]bool{}, compiled: map[string]*keys.Pattern{}, matching: map[*Subscriber]bool{}}
	for i := range h.subs {
		h.subs[i] = map[string]map[*Subscriber]bool{}
	}
	h.backlog.limit.Store(DefaultBacklog)
	h.carrier = carry(h.deliver)
	return h
}

// Publish publishes a message of a client, whose last one last points to, and returns how many get
// it: the clients of this proxy, and one for each other proxy that listens to anything.
//
// Errors: those of quorum.Messages.Publish.
func (h *Hub) Publish(ctx context.Context, m quorum.Message, last *uint64) (receivers int, err error) {
	others, err := h.carrier.Publish(ctx, m, last)
	if err != nil {
		return 0, err
	}
	receivers, patterns := h.counted(m)
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

// subscribed is a pattern and how many clients are subscribed to it.
type subscribed struct {
	pattern     *keys.Pattern
	subscribers int
}

// counted is how many clients are subscribed to the channel of a message, and the patterns that are
// still to be compared with it.
func (h *Hub) counted(m quorum.Message) (n int, patterns []subscribed) {
	h.mu.Lock()
	n = len(h.subs[kindOf(m)][m.Channel])
	var long []string
	var subscribersOfLong []int
	if !m.Shard {
		patterns = make([]subscribed, 0, len(h.compiled))
		for name, to := range h.subs[Patterns] {
			if p := h.compiled[name]; p != nil {
				patterns = append(patterns, subscribed{p, len(to)})
				continue
			}
			long, subscribersOfLong = append(long, name), append(subscribersOfLong, len(to))
		}
	}
	h.mu.Unlock()
	for i, name := range long {
		patterns = append(patterns, subscribed{keys.Compile(name), subscribersOfLong[i]})
	}
	return n, patterns
}

// kindOf is what a message is for, but for patterns.
func kindOf(m quorum.Message) Kind {
	if m.Shard {
		return Shards
	}
	return Channels
}

// deliver gives a message to those who are to get it. Patterns are compared by those who are
// subscribed to them.
func (h *Hub) deliver(m quorum.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &arrival{message: m}
	to := h.subs[kindOf(m)][m.Channel]
	for s := range to {
		s.put(a, true)
	}
	if m.Shard {
		return
	}
	for s := range h.matching {
		if !to[s] {
			s.put(a, false)
		}
	}
}

// Count is how many clients of this proxy are subscribed to a channel or pattern.
func (h *Hub) Count(kind Kind, name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind][name])
}

// Total is to how many channels or patterns clients of this proxy are subscribed.
func (h *Hub) Total(kind Kind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs[kind])
}

// Names are the channels or patterns to which clients of this proxy are subscribed, and that match
// a glob.
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

// longPattern is how long a pattern is that is compiled when it is needed: compiled it takes many
// times its bytes.
const longPattern = 1 << 10

// add has a client subscribed. It is called with mu held.
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

// remove has a client not subscribed. It is called with mu held.
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
