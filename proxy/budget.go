package proxy

import (
	"fmt"
	"sync/atomic"

	"redlock-proxy/internal/resp"
)

// defaultHeldInput is enough for 128 commands of the longest kind that are on their way at a time.
const defaultHeldInput = 256 << 20

// budget bounds what all clients together may hold of commands that are not complete, and have kept
// between commands. It is safe for concurrent use.
type budget struct {
	limit, held, refused atomic.Int64
	// shared returns how many bytes of it are taken by what clients share. It is set once.
	shared func() int64
}

// now is how much of it is taken.
func (b *budget) now() int64 { return b.held.Load() + b.shared() }

// take adds bytes, unless they are too many. A nil budget is without a limit.
func (b *budget) take(n int) error {
	if b == nil {
		return nil
	}
	limit := b.limit.Load()
	b.held.Add(int64(n))
	if b.now() > limit {
		b.held.Add(-int64(n))
		b.refused.Add(1)
		return &resp.RequestError{Text: fmt.Sprintf("out of memory for input: incomplete commands, and what is kept for clients between their commands, are limited to %d bytes in all; raise max-input-memory", limit)}
	}
	return nil
}

// give takes bytes off.
func (b *budget) give(n int) {
	if b != nil {
		b.held.Add(-int64(n))
	}
}
