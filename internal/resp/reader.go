package resp

import (
	"bytes"
	"io"
)

// Kind is the kind of an element of a reply: its first byte.
type Kind byte

// The kinds of RESP2. Null is the kind of a Bulk or Array of length -1, and of RESP3's null.
const (
	Status     Kind = '+'
	ErrorReply Kind = '-'
	Int        Kind = ':'
	Bulk       Kind = '$'
	Array      Kind = '*'
	Null       Kind = '_'
	// SkippedBulk is a Bulk of N bytes that the reader discarded because of the limits; see
	// Limits.Skip.
	SkippedBulk Kind = 0
)

// Kinds of RESP3, which only a reader made by NewRESP3Reader reads.
const (
	// Map is the kind of a map, which the reader reads like an Array of its keys and values, one
	// after the other.
	Map Kind = '%'
	// Set is the kind of a set, which the reader reads like an Array.
	Set Kind = '~'
	// Push is the kind of a push, which the reader reads like an Array. A push is not a reply, and
	// comes between replies.
	Push Kind = '>'
	// verbatim is a Bulk that begins with its format.
	verbatim Kind = '='
)

// Error holds an error reply, without the leading '-'.
type Error string

// Error returns the text of the reply.
func (e Error) Error() string { return string(e) }

// Token holds an element of a reply. The elements of an array follow as tokens of their own.
type Token struct {
	Kind Kind
	// N is the value of an Int, the number of elements of an Array, or the size of a SkippedBulk in
	// bytes.
	N int64
	// Text is the text of a Status, ErrorReply or Bulk. It is valid until the next read.
	Text []byte
}

const (
	// initialBufferSize is the size of a reader's first buffer, maxKeptBufferSize the largest size
	// that it keeps.
	initialBufferSize = 4 << 10
	maxKeptBufferSize = 64 << 10
)

// Reader decodes replies from a source that it does not trust. Its buffer grows with the bytes that
// arrive, not with the lengths in headers.
type Reader struct {
	src    io.Reader
	limits Limits
	// resp3 is set if the reader also reads some kinds of RESP3.
	resp3     bool
	remaining budget
	reserved  int64 // bytes reserved of limits.SharedAllowance
	buf       []byte
	// buf[r:w] holds the bytes that the reader has read from the source, but not decoded yet.
	r, w int
}

// NewReader returns a reader of RESP2 replies within limits.
func NewReader(src io.Reader, limits Limits) *Reader {
	return &Reader{src: src, limits: limits, remaining: limits.budget(), buf: make([]byte, initialBufferSize)}
}

// NewRESP3Reader returns a reader for a connection after HELLO 3. It also reads maps, sets, pushes,
// verbatim strings and nulls, but no other kinds of RESP3.
func NewRESP3Reader(src io.Reader, limits Limits) *Reader {
	r := NewReader(src, limits)
	r.resp3 = true
	return r
}

// Begin begins a reply, or several replies that share one set of limits.
func (r *Reader) Begin() {
	r.remaining = r.limits.budget()
	if r.r == r.w && len(r.buf) > maxKeptBufferSize {
		r.buf, r.r, r.w = make([]byte, initialBufferSize), 0, 0
	}
}

// End ends a reply that Begin began. It must also be called after an error, because it returns the
// reserved memory to Limits.SharedAllowance.
func (r *Reader) End() {
	r.limits.SharedAllowance.release(r.reserved)
	r.reserved = 0
	r.Begin()
}

// Buffered reports whether the reader has read bytes that it has not decoded yet.
func (r *Reader) Buffered() bool { return r.r < r.w }

// Wait waits until bytes are buffered. Errors are errors of the source.
func (r *Reader) Wait() error {
	if r.Buffered() {
		return nil
	}
	return r.fill(1)
}

// Next reads an element. Errors are *ProtocolError and errors of the source.
func (r *Reader) Next() (Token, error) { return r.next(0) }

// next reads an element that is inside depth arrays.
func (r *Reader) next(depth int) (Token, error) {
	line, err := r.readLine()
	if err != nil {
		return Token{}, err
	}
	if len(line) == 0 {
		return Token{}, protocolErrorf("an empty line")
	}
	switch kind := Kind(line[0]); kind {
	case Status, ErrorReply:
		return Token{Kind: kind, Text: line[1:]}, r.remaining.spendText(len(line))
	case Int:
		n, ok := parseNumber(line[1:])
		if !ok {
			return Token{}, protocolErrorf("%.32q instead of a number", line[1:])
		}
		return Token{Kind: Int, N: n}, nil
	case Bulk, Array:
		n, err := parseLength(line[1:])
		switch {
		case err != nil:
			return Token{}, err
		case n < 0:
			return Token{Kind: Null}, nil
		case kind == Array:
			return Token{Kind: Array, N: n}, r.remaining.spendArray(r.limits, n, depth)
		}
		return r.readBulk(n)
	default:
		if r.resp3 {
			return r.nextRESP3(kind, line[1:], depth)
		}
		return Token{}, protocolErrorf("an element that begins with %q", line[0])
	}
}

// nextRESP3 reads an element of RESP3.
func (r *Reader) nextRESP3(kind Kind, head []byte, depth int) (Token, error) {
	if kind == Null && len(head) == 0 {
		return Token{Kind: Null}, nil
	}
	n, err := parseLength(head)
	switch {
	case kind == verbatim && err == nil && n >= int64(len("txt:")):
		t, err := r.readBulk(n)
		if err == nil && t.Text[len("txt")] != ':' {
			err = protocolErrorf("a verbatim string without a format")
		}
		if err == nil {
			t.Text = t.Text[len("txt:"):]
		}
		return t, err
	case kind != Map && kind != Set && kind != Push || kind == Push && depth > 0:
		return Token{}, protocolErrorf("an element that begins with %q", kind)
	case err != nil:
		return Token{}, err
	case n < 0 || n > int64(r.limits.Elements):
		return Token{}, protocolErrorf("an array or map of %d elements, which is outside the limits", n)
	case kind == Map:
		n *= 2
	}
	return Token{Kind: kind, N: n}, r.remaining.spendArray(r.limits, n, depth)
}

// readLine reads a line and returns it without its end.
func (r *Reader) readLine() ([]byte, error) {
	for scanned := 0; ; {
		if end := bytes.IndexByte(r.buf[r.r+scanned:r.w], '\n'); end >= 0 {
			end += scanned
			line := r.buf[r.r : r.r+end]
			r.r += end + 1
			if end == 0 || line[end-1] != '\r' {
				return nil, protocolErrorf("a line that ends in LF, not CRLF")
			}
			if len(line) > r.limits.Line {
				return nil, protocolErrorf("a line of %d bytes, which exceeds the limit", len(line))
			}
			return line[:end-1], nil
		}
		if scanned = r.w - r.r; scanned > r.limits.Line {
			return nil, protocolErrorf("a line of more than %d bytes", r.limits.Line)
		}
		if err := r.fill(scanned + 1); err != nil {
			return nil, err
		}
	}
}

func (r *Reader) readBulk(size int64) (Token, error) {
	if err := r.reserve(size); err != nil {
		if r.remaining.spendSkip(r.limits, size) {
			return Token{Kind: SkippedBulk, N: size}, r.skip(size)
		}
		return Token{}, err
	}
	n := int(size)
	if err := r.fill(n + 2); err != nil {
		return Token{}, err
	}
	text := r.buf[r.r : r.r+n]
	end := r.buf[r.r+n : r.r+n+2]
	r.r += n + 2
	if end[0] != '\r' || end[1] != '\n' {
		return Token{}, protocolErrorf("a string without an end")
	}
	return Token{Kind: Bulk, Text: text}, nil
}

// reserve subtracts a string of size bytes from all limits. If it returns an error, it has changed
// no limit.
func (r *Reader) reserve(size int64) error {
	remaining := r.remaining
	if err := remaining.spendBulk(r.limits, size); err != nil {
		return err
	}
	if err := r.limits.SharedAllowance.reserve(size); err != nil {
		return err
	}
	r.remaining = remaining
	r.reserved += size
	return nil
}

// skip reads and discards a string and its CRLF.
func (r *Reader) skip(size int64) error {
	for size > 0 {
		if err := r.fill(1); err != nil {
			return err
		}
		n := min(size, int64(r.w-r.r))
		r.r += int(n)
		size -= n
	}
	if err := r.fill(2); err != nil {
		return err
	}
	r.r += 2
	if r.buf[r.r-2] != '\r' || r.buf[r.r-1] != '\n' {
		return protocolErrorf("a string without an end")
	}
	return nil
}

// fill reads until n bytes are buffered.
func (r *Reader) fill(n int) error {
	for r.w-r.r < n {
		r.makeRoom(n)
		got, err := r.src.Read(r.buf[r.w:])
		r.w += got
		if err != nil && r.w-r.r < n {
			return err
		}
	}
	return nil
}

// makeRoom makes room in the buffer for at least one more byte, if n bytes must be buffered in all.
func (r *Reader) makeRoom(n int) {
	if r.w < len(r.buf) && r.r+n <= len(r.buf) {
		return
	}
	if n <= len(r.buf) {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
		return
	}
	if r.w < len(r.buf) {
		return
	}
	buffered := r.w - r.r
	larger := make([]byte, min(2*max(buffered, initialBufferSize/2), n)+initialBufferSize)
	r.w = copy(larger, r.buf[r.r:r.w])
	r.buf, r.r = larger, 0
}

// ReadValue reads a complete reply: nil, an int64, a string, an Error, a SkippedSize, or a []any of
// such values. Errors are *ProtocolError and errors of the source.
func (r *Reader) ReadValue() (any, error) { return r.readValue(0) }

// ReadValueFrom reads the rest of a reply as ReadValue does, after Next has returned its first
// element.
func (r *Reader) ReadValueFrom(first Token) (any, error) { return r.readValueFrom(first, 0) }

func (r *Reader) readValue(depth int) (any, error) {
	t, err := r.next(depth)
	if err != nil {
		return nil, err
	}
	return r.readValueFrom(t, depth)
}

func (r *Reader) readValueFrom(t Token, depth int) (any, error) {
	switch t.Kind {
	case Null:
		return nil, nil
	case Int:
		return t.N, nil
	case SkippedBulk:
		return SkippedSize(t.N), nil
	case ErrorReply:
		return Error(t.Text), nil
	case Array, Map, Set, Push:
		return r.readArray(int(t.N), depth+1)
	default:
		return string(t.Text), nil
	}
}

func (r *Reader) readArray(n, depth int) (any, error) {
	values := make([]any, 0, min(n, 64))
	for range n {
		value, err := r.readValue(depth)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// Skip reads and discards the n elements of an array after Next has returned its header.
func (r *Reader) Skip(n int64) error {
	for ; n > 0; n-- {
		if _, err := r.readValue(1); err != nil {
			return err
		}
	}
	return nil
}
