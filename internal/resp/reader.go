package resp

import (
	"bytes"
	"io"
)

// Kind is what an element of a reply is.
type Kind byte

// The kinds of RESP2.
const (
	Status Kind = '+'
	Failed Kind = '-'
	Int    Kind = ':'
	Bulk   Kind = '$'
	Array  Kind = '*'
	Null   Kind = '_'
	// Over is a Bulk for which there was no room, of N bytes; see Limits.Skip.
	Over Kind = 0
)

// Kinds of RESP3, which only a reader made by NewReader3 reads.
const (
	// Map is as an Array of its keys and values, one after the other.
	Map Kind = '%'
	// Push is as an Array. It is no reply, and stands between replies.
	Push Kind = '>'
	// verbatim is a Bulk with its format before it.
	verbatim Kind = '='
)

// Error is an error reply; it begins with an upper-case code.
type Error string

// Error is its text.
func (e Error) Error() string { return string(e) }

// Token is an element of a reply; an array is one, and its elements are the next ones.
type Token struct {
	Kind Kind
	// N is the number of an Int, and how many elements an Array has.
	N int64
	// Text is that of a Status, Failed or Bulk, until the next read.
	Text []byte
}

const (
	// firstBuffer is what a reader begins with, keptBuffer the most that it keeps.
	firstBuffer = 4 << 10
	keptBuffer  = 64 << 10
)

// Reader decodes replies from a source that it does not trust. What it holds grows with
// the bytes that arrive, never with a length that was only announced.
type Reader struct {
	src    io.Reader
	limits Limits
	// three is set for what of RESP3 is read.
	three bool
	left  budget
	taken int64 // of limits.Together
	buf   []byte
	// buf[r:w] is read from the source and not yet told.
	r, w int
}

// NewReader reads replies within limits.
func NewReader(src io.Reader, limits Limits) *Reader {
	return &Reader{src: src, limits: limits, left: limits.budget(), buf: make([]byte, firstBuffer)}
}

// NewReader3 is NewReader for one who has said HELLO 3: it reads maps, pushes and nulls as well. Of
// the other kinds of RESP3 it reads none.
func NewReader3(src io.Reader, limits Limits) *Reader {
	r := NewReader(src, limits)
	r.three = true
	return r
}

// Begin begins a reply, or several that have the limits together.
func (r *Reader) Begin() {
	r.left = r.limits.budget()
	if r.r == r.w && len(r.buf) > keptBuffer {
		r.buf, r.r, r.w = make([]byte, firstBuffer), 0, 0
	}
}

// End is to be called when a reply, or all that Begin began, was read or cannot be: what it took of
// memory is free again, but for what the caller keeps.
func (r *Reader) End() {
	r.limits.Together.give(r.taken)
	r.taken = 0
	r.Begin()
}

// Buffered reports whether there are bytes that were read from the source already.
func (r *Reader) Buffered() bool { return r.r < r.w }

// Wait reads from the source unless there is something already. Errors are those of the
// source.
func (r *Reader) Wait() error {
	if r.Buffered() {
		return nil
	}
	return r.more(1)
}

// Next reads an element. Errors are *ProtocolError and those of the source.
func (r *Reader) Next() (Token, error) { return r.next(0) }

// next reads an element with so many arrays around it.
func (r *Reader) next(depth int) (Token, error) {
	line, err := r.line()
	if err != nil {
		return Token{}, err
	}
	if len(line) == 0 {
		return Token{}, wrong("an empty line")
	}
	switch kind := Kind(line[0]); kind {
	case Status, Failed:
		return Token{Kind: kind, Text: line[1:]}, r.left.text(len(line))
	case Int:
		n, ok := number(line[1:])
		if !ok {
			return Token{}, wrong("a number %.32q", line[1:])
		}
		return Token{Kind: Int, N: n}, nil
	case Bulk, Array:
		n, err := length(line[1:])
		switch {
		case err != nil:
			return Token{}, err
		case n < 0:
			return Token{Kind: Null}, nil
		case kind == Array:
			return Token{Kind: Array, N: n}, r.left.array(r.limits, n, depth)
		}
		return r.bulk(n)
	default:
		if r.three {
			return r.next3(kind, line[1:], depth)
		}
		return Token{}, wrong("an element that begins with %q", line[0])
	}
}

// next3 reads an element of RESP3.
func (r *Reader) next3(kind Kind, head []byte, depth int) (Token, error) {
	if kind == Null && len(head) == 0 {
		return Token{Kind: Null}, nil
	}
	n, err := length(head)
	switch {
	case kind == verbatim && err == nil && n >= int64(len("txt:")):
		t, err := r.bulk(n)
		if err == nil && t.Text[len("txt")] != ':' {
			err = wrong("a verbatim string without a format")
		}
		if err == nil {
			t.Text = t.Text[len("txt:"):]
		}
		return t, err
	case kind != Map && kind != Push || kind == Push && depth > 0:
		return Token{}, wrong("an element that begins with %q", kind)
	case err != nil:
		return Token{}, err
	case n < 0 || n > int64(r.limits.Elements):
		return Token{}, wrong("%d elements", n)
	case kind == Map:
		n *= 2
	}
	return Token{Kind: kind, N: n}, r.left.array(r.limits, n, depth)
}

// line reads up to the end of a line, which is not returned.
func (r *Reader) line() ([]byte, error) {
	for seen := 0; ; {
		if end := bytes.IndexByte(r.buf[r.r+seen:r.w], '\n'); end >= 0 {
			end += seen
			line := r.buf[r.r : r.r+end]
			r.r += end + 1
			if end == 0 || line[end-1] != '\r' {
				return nil, wrong("a line that ends with a newline alone")
			}
			if len(line) > r.limits.Line {
				return nil, wrong("a line of %d bytes", len(line))
			}
			return line[:end-1], nil
		}
		if seen = r.w - r.r; seen > r.limits.Line {
			return nil, wrong("a line of more than %d bytes", r.limits.Line)
		}
		if err := r.more(seen + 1); err != nil {
			return nil, err
		}
	}
}

func (r *Reader) bulk(size int64) (Token, error) {
	if err := r.hold(size); err != nil {
		if r.left.skips(r.limits, size) {
			return Token{Kind: Over, N: size}, r.skip(size)
		}
		return Token{}, err
	}
	n := int(size)
	if err := r.more(n + 2); err != nil {
		return Token{}, err
	}
	text := r.buf[r.r : r.r+n]
	end := r.buf[r.r+n : r.r+n+2]
	r.r += n + 2
	if end[0] != '\r' || end[1] != '\n' {
		return Token{}, wrong("a string without an end")
	}
	return Token{Kind: Bulk, Text: text}, nil
}

// hold takes the length of a string off all limits, or none.
func (r *Reader) hold(size int64) error {
	left := r.left
	if err := left.bulk(r.limits, size); err != nil {
		return err
	}
	if err := r.limits.Together.take(size); err != nil {
		return err
	}
	r.left = left
	r.taken += size
	return nil
}

// skip reads over a string and the end of its line, and holds none of it.
func (r *Reader) skip(size int64) error {
	for size > 0 {
		if err := r.more(1); err != nil {
			return err
		}
		n := min(size, int64(r.w-r.r))
		r.r += int(n)
		size -= n
	}
	if err := r.more(2); err != nil {
		return err
	}
	r.r += 2
	if r.buf[r.r-2] != '\r' || r.buf[r.r-1] != '\n' {
		return wrong("a string without an end")
	}
	return nil
}

// more reads until there are n bytes.
func (r *Reader) more(n int) error {
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

// makeRoom has room for at least one more byte of n.
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
	held := r.w - r.r
	grown := make([]byte, min(2*max(held, firstBuffer/2), n)+firstBuffer)
	r.w = copy(grown, r.buf[r.r:r.w])
	r.buf, r.r = grown, 0
}

// Value reads a whole reply: nil, an int64, a string, an Error, a Skipped, or a []any of these.
// Errors are *ProtocolError and those of the source.
func (r *Reader) Value() (any, error) { return r.value(0) }

// ValueOf is Value of which the first element was read already, and nothing since.
func (r *Reader) ValueOf(first Token) (any, error) { return r.valueOf(first, 0) }

func (r *Reader) value(depth int) (any, error) {
	t, err := r.next(depth)
	if err != nil {
		return nil, err
	}
	return r.valueOf(t, depth)
}

func (r *Reader) valueOf(t Token, depth int) (any, error) {
	switch t.Kind {
	case Null:
		return nil, nil
	case Int:
		return t.N, nil
	case Over:
		return Skipped(t.N), nil
	case Failed:
		return Error(t.Text), nil
	case Array, Map, Push:
		return r.array(int(t.N), depth+1)
	default:
		return string(t.Text), nil
	}
}

func (r *Reader) array(n, depth int) (any, error) {
	all := make([]any, 0, min(n, 64))
	for range n {
		one, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Skip reads over the elements of an array of which the header was read.
func (r *Reader) Skip(n int64) error {
	for ; n > 0; n-- {
		if _, err := r.value(1); err != nil {
			return err
		}
	}
	return nil
}
