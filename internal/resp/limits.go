package resp

import (
	"fmt"
	"sync/atomic"
)

// Limits holds the limits of one reply. All fields except SharedAllowance and Skip must be set.
type Limits struct {
	// Line is the maximum size of a status or an error, in bytes.
	Line int
	// Bulk is the maximum size of a bulk string, in bytes.
	Bulk int
	// Elements is the maximum number of elements of all arrays of a reply together.
	Elements int
	// Depth is the maximum nesting of arrays.
	Depth int
	// Total is the maximum size of all strings, statuses and errors of a reply together, in bytes.
	Total int
	// SharedAllowance, if not nil, is an additional limit of the memory of all readers that share
	// it.
	SharedAllowance *Allowance
	// Skip, if not 0, lets a reader discard a bulk string of more than Skip bytes that exceeds
	// Total or SharedAllowance, instead of failing; see [SkippedSize].
	Skip int
}

// SkippedSize is the length in bytes of a bulk string that the reader discarded because of the
// limits. It takes the place of the string.
type SkippedSize int64

// skipFactor limits the bytes that a reader may discard of one reply, as a multiple of Total.
const skipFactor = 64

// Allowance limits the total size of the strings that several readers may hold at a time, in bytes.
// A string counts from its header until [Reader.End]. An Allowance is safe for concurrent use.
type Allowance struct{ remaining atomic.Int64 }

// NewAllowance returns an allowance of the given number of bytes.
func NewAllowance(bytes int64) *Allowance {
	a := &Allowance{}
	a.remaining.Store(bytes)
	return a
}

// reserve reserves n bytes. It returns a *ProtocolError if too few are left.
func (a *Allowance) reserve(n int64) error {
	if a == nil {
		return nil
	}
	if a.remaining.Add(-n) < 0 {
		a.remaining.Add(n)
		return protocolErrorf("a string of %d bytes, with too little memory left for all replies", n)
	}
	return nil
}

// release frees n reserved bytes.
func (a *Allowance) release(n int64) {
	if a != nil {
		a.remaining.Add(n)
	}
}

// ClientLimits returns the limits for a client library. They exceed the needs of any reply to the
// proxy's own commands, and are far below the memory of a machine.
func ClientLimits() Limits {
	return Limits{Line: 64 << 10, Bulk: 32 << 20, Elements: 1 << 17, Depth: 32, Total: 128 << 20}
}

// ProtocolError means that a reply is invalid, or larger than the limits. The rest of the stream
// cannot be read.
type ProtocolError struct{ text string }

// Error returns a text that names the invalid part.
func (e *ProtocolError) Error() string { return "invalid reply: " + e.text }

func protocolErrorf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// budget holds the remaining limits of a reply.
type budget struct{ elements, total, skip int }

func (l Limits) budget() budget { return budget{l.Elements, l.Total, skipFactor * l.Total} }

// spendSkip reports whether a bulk string of size bytes may be discarded, and subtracts it if so.
func (b *budget) spendSkip(l Limits, size int64) bool {
	if l.Skip == 0 || size <= int64(l.Skip) || size > int64(l.Bulk) || size > int64(b.skip) {
		return false
	}
	b.skip -= int(size)
	return true
}

// spendBulk subtracts a bulk string of size bytes.
func (b *budget) spendBulk(l Limits, size int64) error {
	if size > int64(l.Bulk) || size > int64(b.total) {
		return protocolErrorf("a string of %d bytes, which exceeds the limit", size)
	}
	b.total -= int(size)
	return nil
}

// spendText subtracts a status or an error of size bytes.
func (b *budget) spendText(size int) error {
	if b.total -= size; b.total < 0 {
		return protocolErrorf("lines that exceed the limit of the whole reply")
	}
	return nil
}

// spendArray subtracts an array of size elements, which is inside depth other arrays.
func (b *budget) spendArray(l Limits, size int64, depth int) error {
	switch {
	case size > int64(b.elements):
		return protocolErrorf("an array of %d elements, which exceeds the limit", size)
	case depth >= l.Depth:
		return protocolErrorf("arrays nested deeper than %d", l.Depth)
	}
	b.elements -= int(size)
	return nil
}

// parseNumber parses the number of a header or an integer: digits, and optionally a minus.
func parseNumber(text []byte) (n int64, ok bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > maxDigits {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		u = 10*u + uint64(c-'0')
	}
	switch negative := len(digits) < len(text); {
	case negative && u <= 1<<63:
		return int64(-u), true
	case !negative && u < 1<<63:
		return int64(u), true
	default:
		return 0, false
	}
}

// maxDigits is the number of digits of the largest int64. Any number with 19 digits fits a uint64.
const maxDigits = 19

// parseLength parses the number in the header of a string or an array; -1 means a null.
func parseLength(text []byte) (int64, error) {
	n, ok := parseNumber(text)
	if !ok || n < -1 {
		return 0, protocolErrorf("%.32q instead of a length", text)
	}
	return n, nil
}
