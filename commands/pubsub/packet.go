package pubsub

import (
	"sync"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// Kind is what is subscribed to.
type Kind uint8

// The kinds.
const (
	Channels Kind = iota
	Patterns
	Shards
	kinds
)

// arrival is a message that has come, for all who may get it.
type arrival struct {
	shared
	message quorum.Message
	mu      sync.Mutex
	packets map[string]*packet // by what they are for
}

// size is what it counts while it waits to be compared with patterns, in bytes.
func (a *arrival) size() int { return len(a.message.Channel) + len(a.message.Payload) + 3*perWord }

// plain is the message for those who are subscribed to its channel.
func (a *arrival) plain() *packet {
	kind := "message"
	if a.message.Shard {
		kind = "smessage"
	}
	return a.packet("", []string{kind, a.message.Channel, a.message.Payload})
}

// by is the message for those who are subscribed to a pattern.
func (a *arrival) by(pattern string) *packet {
	return a.packet("p"+pattern, []string{"pmessage", pattern, a.message.Channel, a.message.Payload})
}

// packet is the one for a use, made of the words by the first who asks.
func (a *arrival) packet(use string, words []string) *packet {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.packets[use]; p != nil {
		return p
	}
	if a.packets == nil {
		a.packets = map[string]*packet{}
	}
	p := &packet{words: words}
	a.packets[use] = p
	return p
}

// packet is a message for clients. It is encoded once for all that speak a protocol.
type packet struct {
	shared
	words []string
	once  [2]sync.Once
	forms [2][]byte
}

// size is what it counts while it waits, in bytes.
func (p *packet) size() (n int) {
	for _, w := range p.words {
		n += len(w) + perWord
	}
	return n
}

// memory is about what it takes, with what it is encoded to.
func (p *packet) memory() int { return 2 * p.size() }

// perWord is what a word counts beside its bytes.
const perWord = 16

// form is the packet for clients that speak a protocol, 2 or 3.
func (p *packet) form(proto int) []byte {
	i := 0
	if proto == 3 {
		i = 1
	}
	p.once[i].Do(func() {
		b := resp.AppendHeader(nil, Header(proto), int64(len(p.words)))
		for _, w := range p.words {
			b = redcon.AppendBulkString(b, w)
		}
		p.forms[i] = b
	})
	return p.forms[i]
}

// Header is the kind of a message in a protocol, 2 or 3.
func Header(proto int) resp.Kind {
	if proto == 3 {
		return resp.Push
	}
	return resp.Array
}
