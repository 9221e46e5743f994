package resp

import (
	"net"
	"syscall"
)

// Limit returns a connection that lets only RESP2 replies within the limits pass. Before the first
// byte that breaks a limit, each Read fails with a *ProtocolError.
func Limit(conn net.Conn, limits Limits) net.Conn {
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

// Read implements net.Conn. It is not safe for concurrent use.
func (c *boundConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	passed, limitErr := c.scanner.scan(p[:n])
	if limitErr != nil {
		return passed, limitErr
	}
	return n, err
}

// boundSysConn adds access to the socket, to check whether the connection is still open.
type boundSysConn struct {
	*boundConn
	syscall.Conn
}

// boundScanner checks a stream of replies, which comes in pieces of any size. It stops the stream
// before the first byte that breaks a limit; it refuses a header before the line is complete. It
// stores no payload, and accepts only RESP2.
type boundScanner struct {
	limits Limits
	left   budget
	// open holds, for each array around the next byte, the number of remaining elements.
	open []int64
	// skip is the number of remaining bytes of a bulk string, including its CRLF.
	skip int64
	// kind is the kind of the element whose line is being read; zero: an element begins.
	kind Kind
	// head is the number in the line, textLen the length of a status or error line so far.
	head    []byte
	textLen int
	cr      bool // the last byte was '\r'
	err     error
}

// newBoundScanner returns a scanner at the beginning of a stream.
func newBoundScanner(limits Limits) *boundScanner {
	return &boundScanner{limits: limits, left: limits.budget(), head: make([]byte, 0, maxDigits+1)}
}

// scan checks the next piece of the stream, and returns how many of its bytes may pass. After an
// error, each further call returns the same error.
func (s *boundScanner) scan(p []byte) (n int, err error) {
	for n < len(p) && s.err == nil {
		if s.skip > 0 {
			m := min(s.skip, int64(len(p)-n))
			n += int(m)
			if s.skip -= m; s.skip == 0 {
				s.endElement()
			}
			continue
		}
		if s.err = s.takeByte(p[n]); s.err == nil {
			n++
		}
	}
	return n, s.err
}

// takeByte checks a byte of a line.
func (s *boundScanner) takeByte(c byte) error {
	switch {
	case s.kind == 0:
		return s.begin(c)
	case c == '\n' && !s.cr:
		return protocolErrorf("a line that ends in LF, not CRLF")
	case c == '\n':
		return s.endOfLine()
	}
	afterCR := s.cr
	s.cr = c == '\r'
	if s.kind == Status || s.kind == Failed {
		if s.textLen++; s.textLen > s.limits.Line {
			return protocolErrorf("a line of more than %d bytes", s.limits.Line)
		}
		return nil
	}
	switch {
	case afterCR:
		return protocolErrorf("a header with bytes after its end")
	case s.cr:
		return s.checkHead()
	case len(s.head) > maxDigits:
		return protocolErrorf("a number of more than %d digits", maxDigits)
	}
	s.head = append(s.head, c)
	return nil
}

// begin begins an element with its first byte.
func (s *boundScanner) begin(c byte) error {
	switch Kind(c) {
	case Status, Failed, Int, Bulk, Array:
		s.kind, s.head, s.textLen, s.cr = Kind(c), s.head[:0], 1, false
		return nil
	default:
		return protocolErrorf("an element that begins with %q", c)
	}
}

// checkHead checks the number in a line before the line may end.
func (s *boundScanner) checkHead() error {
	if s.kind == Int {
		if _, ok := number(s.head); !ok {
			return protocolErrorf("a number %.32q", s.head)
		}
		return nil
	}
	n, err := length(s.head)
	if err != nil || n < 0 {
		return err
	}
	left := s.left
	if s.kind == Array {
		return left.takeArray(s.limits, n, len(s.open))
	}
	return left.takeBulk(s.limits, n)
}

func (s *boundScanner) endOfLine() error {
	kind := s.kind
	s.kind = 0
	switch kind {
	case Status, Failed:
		if err := s.left.takeText(s.textLen - 1); err != nil {
			return err
		}
		fallthrough
	case Int:
		s.endElement()
		return nil
	}
	n, err := length(s.head)
	switch {
	case n < 0:
		s.endElement()
	case kind == Bulk:
		err = s.left.takeBulk(s.limits, n)
		s.skip = n + 2
	default:
		err = s.left.takeArray(s.limits, n, len(s.open))
		if s.open = append(s.open, n); n == 0 {
			s.open = s.open[:len(s.open)-1]
			s.endElement()
		}
	}
	return err
}

// endElement handles the end of an element, and of the arrays that end with it.
func (s *boundScanner) endElement() {
	for len(s.open) > 0 {
		last := &s.open[len(s.open)-1]
		if *last--; *last > 0 {
			return
		}
		s.open = s.open[:len(s.open)-1]
	}
	s.left = s.limits.budget()
}
