package resp

import (
	"fmt"
	"sync/atomic"
)

// Limits bound one reply. All must be set.
type Limits struct {
	// Line is how many bytes a status or an error may have.
	Line int
	// Bulk is how many bytes a bulk string may have.
	Bulk int
	// Elements is how many elements the arrays of a reply may have together.
	Elements int
	// Depth is how deep arrays may nest.
	Depth int
	// Total is how many bytes all strings and lines of a reply may have together.
	Total int
	// Together, if there is one, bounds what all readers that have it hold at a time, beside these
	// limits.
	Together *Allowance
	// Skip, unless it is 0, has a bulk string of more bytes than that read over where Total or
	// Together have no room for it, instead of ending the reply; see [Skipped].
	Skip int
}

// Skipped stands for a bulk string for which there was no room: it is its length.
type Skipped int64

// skipped is how many times Total may be read over.
const skipped = 64

// Allowance is how many bytes of strings several readers may hold together, each from when a string
// is announced until its [Reader.End]. It is safe for concurrent use.
type Allowance struct{ left atomic.Int64 }

// NewAllowance allows so many bytes.
func NewAllowance(bytes int64) *Allowance {
	a := &Allowance{}
	a.left.Store(bytes)
	return a
}

// take takes a string's bytes off.
func (a *Allowance) take(n int64) error {
	if a == nil {
		return nil
	}
	if a.left.Add(-n) < 0 {
		a.left.Add(n)
		return wrong("a string of %d bytes, beside too many others", n)
	}
	return nil
}

func (a *Allowance) give(n int64) {
	if a != nil {
		a.left.Add(n)
	}
}

// Client are limits for a client library and what it asks for a program of its own: more
// than any such answer has, and far less than a machine has memory.
func Client() Limits {
	return Limits{Line: 64 << 10, Bulk: 32 << 20, Elements: 1 << 17, Depth: 32, Total: 128 << 20}
}

// ProtocolError says what in a reply no server says, or more than was asked for. Nothing
// after it can be read.
type ProtocolError struct{ text string }

// Error is what is wrong with the reply.
func (e *ProtocolError) Error() string { return "a reply that cannot be right: " + e.text }

func wrong(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// budget is what is left of a reply's limits.
type budget struct{ elements, total, skip int }

func (l Limits) budget() budget { return budget{l.Elements, l.Total, skipped * l.Total} }

// skips takes the length of a bulk string that is to be read over.
func (b *budget) skips(l Limits, size int64) bool {
	if l.Skip == 0 || size <= int64(l.Skip) || size > int64(l.Bulk) || size > int64(b.skip) {
		return false
	}
	b.skip -= int(size)
	return true
}

// bulk takes the length of a bulk string.
func (b *budget) bulk(l Limits, size int64) error {
	if size > int64(l.Bulk) || size > int64(b.total) {
		return wrong("a string of %d bytes", size)
	}
	b.total -= int(size)
	return nil
}

// text takes the length of a status or an error.
func (b *budget) text(size int) error {
	if b.total -= size; b.total < 0 {
		return wrong("lines that are too long together")
	}
	return nil
}

// array takes the length of an array that has so many others around it.
func (b *budget) array(l Limits, size int64, depth int) error {
	switch {
	case size > int64(b.elements):
		return wrong("an array of %d elements", size)
	case depth >= l.Depth:
		return wrong("more than %d arrays in each other", l.Depth)
	}
	b.elements -= int(size)
	return nil
}

// number reads what stands in a header or an integer: digits, perhaps with a minus.
func number(text []byte) (n int64, ok bool) {
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

// maxDigits are those of the largest number; so many never overflow 64 bits.
const maxDigits = 19

// length reads the number in the header of a string or an array; -1 is a null.
func length(text []byte) (int64, error) {
	n, ok := number(text)
	if !ok || n < -1 {
		return 0, wrong("a length %.32q", text)
	}
	return n, nil
}
