package subscribers

import (
	"sync"

	"redlock-proxy/resp"
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

// packet is a message for clients. It is encoded once for all that speak a protocol.
type packet struct {
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
			b = resp.AppendBulk(b, w)
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
