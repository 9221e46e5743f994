package resp

import (
	"net"
	"syscall"
)

// Bound has a connection fail, and fail for good, with a *ProtocolError before its reader
// gets to see what is beyond the limits. Only replies in RESP2 pass.
func Bound(conn net.Conn, limits Limits) net.Conn {
	bound := &boundConn{conn, newBoundScanner(limits)}
	if sys, ok := conn.(syscall.Conn); ok {
		return &boundSysConn{bound, sys}
	}
	return bound
}

type boundConn struct {
	net.Conn
	scanner *boundScanner
}

// Read is of net.Conn. Like that of most connections it is for one reader at a time.
func (c *boundConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	passed, wrong := c.scanner.scan(p[:n])
	if wrong != nil {
		return passed, wrong
	}
	return n, err
}

// boundSysConn lets its user look whether the connection still stands.
type boundSysConn struct {
	*boundConn
	syscall.Conn
}

// boundScanner looks at a stream of replies as they pass, however it is cut into pieces, and
// stops it before the first byte by which a reply would break its limits: a header is told
// to be wrong before its line is whole. It holds no payload. Only RESP2 passes.
type boundScanner struct {
	limits Limits
	left   budget
	// open holds, for each array around the next byte, how many elements are to come.
	open []int64
	// skip is how many bytes of a bulk string are to come, its line end included.
	skip int64
	// kind is that of the element in whose line the next byte is; zero: one begins.
	kind Kind
	// head is the number in the line, textLen how long the line of a text is so far.
	head    []byte
	textLen int
	cr      bool
	err     error
}

// newBoundScanner is at the beginning of a stream.
func newBoundScanner(limits Limits) *boundScanner {
	return &boundScanner{limits: limits, left: limits.budget(), head: make([]byte, 0, maxDigits+1)}
}

// scan looks at the next piece of the stream, and returns how many of its bytes may pass:
// all, or those before what is wrong, which the error tells, now and ever after.
func (s *boundScanner) scan(p []byte) (n int, err error) {
	for n < len(p) && s.err == nil {
		if s.skip > 0 {
			m := min(s.skip, int64(len(p)-n))
			n += int(m)
			if s.skip -= m; s.skip == 0 {
				s.ended()
			}
			continue
		}
		if s.err = s.take(p[n]); s.err == nil {
			n++
		}
	}
	return n, s.err
}

// take looks at a byte of a line.
func (s *boundScanner) take(c byte) error {
	switch {
	case s.kind == 0:
		return s.begin(c)
	case c == '\n' && !s.cr:
		return wrong("a line that ends with a newline alone")
	case c == '\n':
		return s.lineEnds()
	}
	cut := s.cr
	s.cr = c == '\r'
	if s.kind == Status || s.kind == Failed {
		if s.textLen++; s.textLen > s.limits.Line {
			return wrong("a line of more than %d bytes", s.limits.Line)
		}
		return nil
	}
	switch {
	case cut:
		return wrong("a header that goes on after its end")
	case s.cr:
		return s.checkHead()
	case len(s.head) > maxDigits:
		return wrong("a number of more than %d digits", maxDigits)
	}
	s.head = append(s.head, c)
	return nil
}

func (s *boundScanner) begin(c byte) error {
	switch Kind(c) {
	case Status, Failed, Int, Bulk, Array:
		s.kind, s.head, s.textLen, s.cr = Kind(c), s.head[:0], 1, false
		return nil
	default:
		return wrong("an element that begins with %q", c)
	}
}

// checkHead looks at the number in a line before the line may end.
func (s *boundScanner) checkHead() error {
	if s.kind == Int {
		if _, ok := number(s.head); !ok {
			return wrong("a number %.32q", s.head)
		}
		return nil
	}
	n, err := length(s.head)
	if err != nil || n < 0 {
		return err
	}
	left := s.left
	if s.kind == Array {
		return left.array(s.limits, n, len(s.open))
	}
	return left.bulk(s.limits, n)
}

// lineEnds is for a line that is whole.
func (s *boundScanner) lineEnds() error {
	kind := s.kind
	s.kind = 0
	switch kind {
	case Status, Failed:
		if err := s.left.text(s.textLen - 1); err != nil {
			return err
		}
		fallthrough
	case Int:
		s.ended()
		return nil
	}
	n, err := length(s.head)
	switch {
	case n < 0:
		s.ended()
	case kind == Bulk:
		err = s.left.bulk(s.limits, n)
		s.skip = n + 2
	default:
		err = s.left.array(s.limits, n, len(s.open))
		if s.open = append(s.open, n); n == 0 {
			s.open = s.open[:len(s.open)-1]
			s.ended()
		}
	}
	return err
}

// ended is for an element that is whole, and perhaps those around it.
func (s *boundScanner) ended() {
	for len(s.open) > 0 {
		last := &s.open[len(s.open)-1]
		if *last--; *last > 0 {
			return
		}
		s.open = s.open[:len(s.open)-1]
	}
	s.left = s.limits.budget()
}
