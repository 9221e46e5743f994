package resp

import (
	"bytes"
	"errors"
	"strconv"
)

// errUnknownReply means that the upstream sends something that is not RESP.
var errUnknownReply = errors.New("the upstream's reply is not RESP")

const (
	// headSize is how much is kept of a reply: enough to tell what kind of message
	// it is on a subscribed connection.
	headSize = 48
	// maxHeader is more than any header has, the line of a number or a length.
	maxHeader = 64
	// maxLength is beyond any length that a reply can have.
	maxLength = 1 << 50
)

// ReplyScanner finds the ends of replies in an upstream's byte stream, RESP2 and
// RESP3, however the stream is cut into pieces. It holds no payload, only the
// beginning of the current reply.
type ReplyScanner struct {
	// open holds, for each aggregate around the next byte, what is to come of it.
	open []aggregate
	skip uint64 // bytes of a payload to come, its line end included
	line []byte // the beginning of a line that is cut; of a text only the first byte
	// KeepHead has the beginning of the next reply kept, for Begins and the like.
	KeepHead bool
	head     []byte
	kind     byte  // of the current reply, or of the one that just ended
	last     int64 // the last integer in it
	inside   bool  // a reply has begun and not ended
}

// aggregate is an array, map, set or push in the middle of which the stream is.
type aggregate struct {
	left int64 // elements to come
	// apart: it is no element itself, but stands in front of one: an attribute, or a
	// push within EXEC's reply, of a message that the client published to itself.
	apart bool
}

// Scan consumes bytes up to the end of the current reply and returns how many, and
// whether that end was reached.
func (s *ReplyScanner) Scan(p []byte) (n int, ended bool, err error) {
	if len(p) == 0 {
		return 0, false, nil
	}
	if !s.inside {
		s.inside, s.kind, s.head = true, p[0], s.head[:0]
	}
	for n < len(p) && !ended && err == nil {
		var m int
		if s.skip > 0 {
			m = int(min(s.skip, uint64(len(p)-n)))
			s.skip -= uint64(m)
			ended = s.skip == 0 && s.element()
		} else {
			m, ended, err = s.scanLine(p[n:])
		}
		n += m
	}
	if room := headSize - len(s.head); s.KeepHead && room > 0 {
		s.head = append(s.head, p[:min(n, room)]...)
	}
	s.inside = !ended
	return n, ended, err
}

// scanLine consumes a line, or what there is of it.
func (s *ReplyScanner) scanLine(p []byte) (n int, ended bool, err error) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		return len(p), false, s.holdLine(p)
	}
	line := p[:end]
	if len(s.line) > 0 {
		line = append(s.line, line...)
		s.line = nil
	}
	if len(line) > maxHeader && !isText(line[0]) {
		return end + 1, false, errUnknownReply
	}
	ended, err = s.header(bytes.TrimSuffix(line, []byte{'\r'}))
	return end + 1, ended, err
}

// holdLine keeps what must be known of a line that is cut.
func (s *ReplyScanner) holdLine(p []byte) error {
	if len(s.line) == 0 {
		s.line = append(s.line, p[0])
		p = p[1:]
	}
	switch {
	case isText(s.line[0]):
		return nil
	case len(s.line)+len(p) > maxHeader:
		return errUnknownReply
	}
	s.line = append(s.line, p...)
	return nil
}

// isText reports whether an element that begins so is one line of any length, in
// which nothing matters.
func isText(kind byte) bool { return kind == '+' || kind == '-' || kind == '(' || kind == ',' }

// header takes the line that begins an element, and tells whether the whole reply
// ends with it.
func (s *ReplyScanner) header(line []byte) (ended bool, err error) {
	if len(line) == 0 {
		return false, errUnknownReply
	}
	switch line[0] {
	case '+', '-', '_', ',', '#', '(':
		return s.element(), nil
	case ':':
		s.last, err = strconv.ParseInt(string(line[1:]), 10, 64)
		return s.element(), err
	}
	size, ok := replyLength(line[1:])
	if !ok {
		return false, errUnknownReply
	}
	switch line[0] {
	case '$', '=', '!':
		if size < 0 {
			return s.element(), nil
		}
		s.skip = uint64(size) + 2
	case '*', '~':
		return s.enter(aggregate{left: size}), nil
	case '>':
		return s.enter(aggregate{left: size, apart: len(s.open) > 0}), nil
	case '%':
		return s.enter(aggregate{left: 2 * size}), nil
	case '|':
		s.enter(aggregate{left: 2 * size, apart: true})
	default:
		return false, errUnknownReply
	}
	return false, nil
}

// replyLength reads the number after a type: of digits, or -1 for a null.
func replyLength(digits []byte) (n int64, ok bool) {
	if string(digits) == "-1" {
		return -1, true
	}
	for _, digit := range digits {
		if digit -= '0'; digit > 9 || n > maxLength {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	return n, len(digits) > 0
}

// enter goes into an aggregate, unless it is empty.
func (s *ReplyScanner) enter(a aggregate) (ended bool) {
	if a.left > 0 {
		s.open = append(s.open, a)
		return false
	}
	return !a.apart && s.element()
}

// element closes the aggregates that end with the element just scanned, and tells
// whether that was the last.
func (s *ReplyScanner) element() bool {
	for len(s.open) > 0 {
		top := &s.open[len(s.open)-1]
		if top.left--; top.left > 0 {
			return false
		}
		apart := top.apart
		s.open = s.open[:len(s.open)-1]
		if apart {
			return false
		}
	}
	return true
}

// Inside reports whether a reply has begun and not ended.
func (s *ReplyScanner) Inside() bool { return s.inside }

// Kind is the first byte of the current reply, or of the one that just ended.
func (s *ReplyScanner) Kind() Kind { return Kind(s.kind) }

// Last is the last integer in it, if there is one.
func (s *ReplyScanner) Last() int64 { return s.last }

// IsPush reports whether the reply is a RESP3 push.
func (s *ReplyScanner) IsPush() bool { return s.kind == '>' }

// IsError reports whether the reply is an error.
func (s *ReplyScanner) IsError() bool { return s.kind == '-' || s.kind == '!' }

// IsNull reports whether the reply is a null.
func (s *ReplyScanner) IsNull() bool { return s.kind == '_' || s.Begins("*-1") || s.Begins("$-1") }

// IsMonitored reports whether the reply is a line of MONITOR's, as in
// +1339518083.107412 [0 127.0.0.1:60866] "GET" "x".
func (s *ReplyScanner) IsMonitored() bool {
	time, rest, found := bytes.Cut(s.head, []byte{' '})
	return found && s.kind == '+' && len(time) > 1 && len(bytes.Trim(time[1:], "0123456789.")) == 0 && bytes.HasPrefix(rest, []byte{'['})
}

// Begins reports whether the reply's first bytes are these.
func (s *ReplyScanner) Begins(with string) bool {
	return bytes.HasPrefix(s.head, []byte(with))
}

// Message is the first word of an array or push whose first element is a short
// bulk string, as in *3 $7 message; else "".
func (s *ReplyScanner) Message() string {
	fields := bytes.SplitN(s.head, []byte("\r\n"), 4)
	if s.kind != '*' && s.kind != '>' || len(fields) < 4 || string(fields[1]) != "$"+strconv.Itoa(len(fields[2])) {
		return ""
	}
	return string(fields[2])
}
