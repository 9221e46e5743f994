package proxy

import (
	"fmt"
	"sync/atomic"

	"redlock-proxy/internal/resp"
)

// defaultHeldInput is enough for 128 incomplete commands of maximum length at a time.
const defaultHeldInput = 256 << 20

// budget limits the bytes that the proxy holds for all clients together: of incomplete commands,
// and kept between commands. It is safe for concurrent use.
type budget struct {
	limit, held, refused atomic.Int64
	// shared returns how many bytes are taken by data that clients share. It is set once.
	shared func() int64
}

// used returns how many bytes are taken.
func (b *budget) used() int64 { return b.held.Load() + b.shared() }

// take takes n bytes, unless that exceeds the limit. A nil budget has no limit.
func (b *budget) take(n int) error {
	if b == nil {
		return nil
	}
	limit := b.limit.Load()
	b.held.Add(int64(n))
	if b.used() > limit {
		b.held.Add(-int64(n))
		b.refused.Add(1)
		return &resp.RequestError{Text: fmt.Sprintf("out of memory for input: incomplete commands and data kept "+
			"between commands are limited to %d bytes for all clients; raise max-input-memory", limit)}
	}
	return nil
}

// give returns n bytes.
func (b *budget) give(n int) {
	if b != nil {
		b.held.Add(-int64(n))
	}
}
