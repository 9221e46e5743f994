package pubsub

import (
	"sync"

	"github.com/tidwall/redcon"

	"redlock-proxy/internal/resp"
	"redlock-proxy/quorum"
)

// Kind distinguishes subscriptions to channels, patterns and shard channels.
type Kind uint8

// The kinds.
const (
	Channels Kind = iota
	Patterns
	Shards
	kindCount
)

// arrivedMessage holds a message that has arrived. All its subscribers share it.
type arrivedMessage struct {
	queueCounter
	message quorum.Message
	mu      sync.Mutex
	// packets holds the packets by key. The key is "" for subscriptions to the channel, and "p"
	// plus the pattern for subscriptions to a pattern.
	packets map[string]*packet
}

// size returns the size of the message while it waits to be compared with patterns, in bytes.
func (a *arrivedMessage) size() int {
	return len(a.message.Channel) + len(a.message.Payload) + 3*wordOverhead
}

// channelPacket returns the packet for subscribers to the channel of the message.
func (a *arrivedMessage) channelPacket() *packet {
	kind := "message"
	if a.message.Shard {
		kind = "smessage"
	}
	return a.packet("", []string{kind, a.message.Channel, a.message.Payload})
}

// patternPacket returns the packet for subscribers to a pattern.
func (a *arrivedMessage) patternPacket(pattern string) *packet {
	return a.packet("p"+pattern, []string{"pmessage", pattern, a.message.Channel, a.message.Payload})
}

// packet returns the packet with this key. The first call with a key makes the packet from words.
func (a *arrivedMessage) packet(key string, words []string) *packet {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.packets[key]; p != nil {
		return p
	}
	if a.packets == nil {
		a.packets = map[string]*packet{}
	}
	p := &packet{words: words}
	a.packets[key] = p
	return p
}

// packet holds a message for clients, encoded once per protocol.
type packet struct {
	queueCounter
	words     []string
	once      [2]sync.Once
	encodings [2][]byte
}

// size returns the size of the message while it waits, in bytes.
func (p *packet) size() (n int) {
	for _, w := range p.words {
		n += len(w) + wordOverhead
	}
	return n
}

// memory returns the approximate size of the message with its encodings, in bytes.
func (p *packet) memory() int { return 2 * p.size() }

// wordOverhead is the size of a word in addition to its length, in bytes.
const wordOverhead = 16

// encode returns the message in a protocol, 2 or 3.
func (p *packet) encode(proto int) []byte {
	i := 0
	if proto == 3 {
		i = 1
	}
	p.once[i].Do(func() {
		b := resp.AppendHeader(nil, MessageKind(proto), int64(len(p.words)))
		for _, w := range p.words {
			b = redcon.AppendBulkString(b, w)
		}
		p.encodings[i] = b
	})
	return p.encodings[i]
}

// MessageKind returns the type of a message in a protocol, 2 or 3.
func MessageKind(proto int) resp.Kind {
	if proto == 3 {
		return resp.Push
	}
	return resp.Array
}
