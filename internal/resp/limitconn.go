package resp

import (
	"net"
	"syscall"
)

// Limit returns a connection that reads only RESP2 replies within the limits. From the first byte
// that breaks a limit, each Read fails with a *ProtocolError.
func Limit(conn net.Conn, limits Limits) net.Conn {
	limited := &limitedConn{conn, newLimitScanner(limits)}
	if sys, ok := conn.(syscall.Conn); ok {
		return &limitedSysConn{limited, sys}
	}
	return limited
}

type limitedConn struct {
	net.Conn
	scanner *limitScanner
}

// Read implements net.Conn. It is not safe for concurrent use.
func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	passed, limitErr := c.scanner.scan(p[:n])
	if limitErr != nil {
		return passed, limitErr
	}
	return n, err
}

// limitedSysConn also gives access to the socket, so that a client library can check whether the
// connection is still open.
type limitedSysConn struct {
	*limitedConn
	syscall.Conn
}

// limitScanner checks a stream of replies, which comes in pieces of any size. It stops the stream
// before the first byte that breaks a limit; it refuses a header before the line is complete. It
// stores no payload, and accepts only RESP2.
type limitScanner struct {
	limits    Limits
	remaining budget
	// openArrays holds, for each array around the next byte, the number of remaining elements.
	openArrays []int64
	// skipBytes is the number of remaining bytes of a bulk string, including its CRLF.
	skipBytes int64
	// kind is the kind of the element whose line is incomplete. It is zero before an element.
	kind Kind
	// head is the number in the line, textLen the length of a status or error line so far.
	head    []byte
	textLen int
	sawCR   bool // the last byte was '\r'
	err     error
}

// newLimitScanner returns a scanner at the beginning of a stream.
func newLimitScanner(limits Limits) *limitScanner {
	return &limitScanner{limits: limits, remaining: limits.budget(), head: make([]byte, 0, maxDigits+1)}
}

// scan checks the next piece of the stream, and returns the number of its bytes that may pass.
// After an error, each further call returns the same error.
func (s *limitScanner) scan(p []byte) (n int, err error) {
	for n < len(p) && s.err == nil {
		if s.skipBytes > 0 {
			m := min(s.skipBytes, int64(len(p)-n))
			n += int(m)
			if s.skipBytes -= m; s.skipBytes == 0 {
				s.endElement()
			}
			continue
		}
		if s.err = s.checkByte(p[n]); s.err == nil {
			n++
		}
	}
	return n, s.err
}

// checkByte checks a byte of a line.
func (s *limitScanner) checkByte(c byte) error {
	switch {
	case s.kind == 0:
		return s.begin(c)
	case c == '\n' && !s.sawCR:
		return protocolErrorf("a line that ends in LF, not CRLF")
	case c == '\n':
		return s.finishLine()
	}
	afterCR := s.sawCR
	s.sawCR = c == '\r'
	if s.kind == Status || s.kind == ErrorReply {
		if s.textLen++; s.textLen > s.limits.Line {
			return protocolErrorf("a line of more than %d bytes", s.limits.Line)
		}
		return nil
	}
	switch {
	case afterCR:
		return protocolErrorf("a header with bytes after its end")
	case s.sawCR:
		return s.checkHead()
	case len(s.head) > maxDigits:
		return protocolErrorf("a number of more than %d digits", maxDigits)
	}
	s.head = append(s.head, c)
	return nil
}

// begin begins an element with its first byte.
func (s *limitScanner) begin(c byte) error {
	switch Kind(c) {
	case Status, ErrorReply, Int, Bulk, Array:
		s.kind, s.head, s.textLen, s.sawCR = Kind(c), s.head[:0], 1, false
		return nil
	default:
		return protocolErrorf("an element that begins with %q", c)
	}
}

// checkHead checks the number in a line before the line may end.
func (s *limitScanner) checkHead() error {
	if s.kind == Int {
		if _, ok := parseNumber(s.head); !ok {
			return protocolErrorf("%.32q instead of a number", s.head)
		}
		return nil
	}
	n, err := parseLength(s.head)
	if err != nil || n < 0 {
		return err
	}
	remaining := s.remaining
	if s.kind == Array {
		return remaining.spendArray(s.limits, n, len(s.openArrays))
	}
	return remaining.spendBulk(s.limits, n)
}

func (s *limitScanner) finishLine() error {
	kind := s.kind
	s.kind = 0
	switch kind {
	case Status, ErrorReply:
		if err := s.remaining.spendText(s.textLen - 1); err != nil {
			return err
		}
		fallthrough
	case Int:
		s.endElement()
		return nil
	}
	n, err := parseLength(s.head)
	switch {
	case n < 0:
		s.endElement()
	case kind == Bulk:
		err = s.remaining.spendBulk(s.limits, n)
		s.skipBytes = n + 2
	default:
		err = s.remaining.spendArray(s.limits, n, len(s.openArrays))
		if s.openArrays = append(s.openArrays, n); n == 0 {
			s.openArrays = s.openArrays[:len(s.openArrays)-1]
			s.endElement()
		}
	}
	return err
}

// endElement handles the end of an element, and of the arrays that end with it.
func (s *limitScanner) endElement() {
	for len(s.openArrays) > 0 {
		last := &s.openArrays[len(s.openArrays)-1]
		if *last--; *last > 0 {
			return
		}
		s.openArrays = s.openArrays[:len(s.openArrays)-1]
	}
	s.remaining = s.limits.budget()
}
