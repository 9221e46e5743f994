package proxy

import (
	"fmt"
	"sync/atomic"

	"redlock-proxy/internal/resp"
)

// defaultMaxInput is enough for 128 incomplete commands of maximum length at a time.
const defaultMaxInput = 256 << 20

// budget limits the memory for all clients together: for incomplete commands, and for data kept
// between commands. It is safe for concurrent use.
type budget struct {
	limit, reserved, refusals atomic.Int64
	// sharedBytes returns the memory of the data that clients share, in bytes. Only newProxyState
	// sets this field.
	sharedBytes func() int64
}

// used returns the number of bytes in use.
func (b *budget) used() int64 { return b.reserved.Load() + b.sharedBytes() }

// reserve reserves n bytes, unless that exceeds the limit. A nil budget has no limit.
func (b *budget) reserve(n int) error {
	if b == nil {
		return nil
	}
	limit := b.limit.Load()
	b.reserved.Add(int64(n))
	if b.used() > limit {
		b.reserved.Add(-int64(n))
		b.refusals.Add(1)
		return &resp.RequestError{Text: fmt.Sprintf("out of memory for input: incomplete commands and data kept "+
			"between commands are limited to %d bytes for all clients; raise max-input-memory", limit)}
	}
	return nil
}

// release releases n reserved bytes.
func (b *budget) release(n int) {
	if b != nil {
		b.reserved.Add(-int64(n))
	}
}
