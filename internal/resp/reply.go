package resp

import (
	"bytes"
	"errors"
	"strconv"
)

// errUnknownReply means that the upstream sends bytes that are not RESP.
var errUnknownReply = errors.New("the upstream's reply is not RESP")

const (
	// headSize is the number of bytes of a reply's beginning that the scanner stores with KeepHead.
	// They suffice to recognize the kind of a message on a subscribed connection.
	headSize = 48
	// maxHeader is longer than any valid line with a number or a length.
	maxHeader = 64
	// maxLength is larger than any valid length.
	maxLength = 1 << 50
)

// ReplyScanner finds the ends of replies in an upstream's byte stream, RESP2 and RESP3. The stream
// may come in pieces of any size. The scanner stores no payload, except the beginning of a reply if
// KeepHead is set.
type ReplyScanner struct {
	// openAggregates holds the aggregates around the next byte, the outermost first.
	openAggregates   []aggregate
	payloadRemaining uint64 // remaining bytes of a payload, including its CRLF
	line             []byte // the beginning of an incomplete line; of a text line only the first byte
	// KeepHead makes the scanner store the beginning of the next reply, for Begins, Message and
	// similar methods.
	KeepHead bool
	head     []byte
	kind     byte  // of the current reply, or of the last reply
	lastInt  int64 // the last integer in the reply
	inReply  bool  // a reply has begun and not ended
}

// aggregate describes an incomplete array, map, set or push.
type aggregate struct {
	remaining int64 // remaining elements
	// precedesElement is set if the aggregate precedes an element and is no element itself. It is
	// an attribute, or a push within the reply to EXEC. Redis sends such a push if the client
	// publishes a message to itself.
	precedesElement bool
}

// Scan consumes bytes up to the end of the current reply. It returns their number, and reports
// whether the reply has ended.
func (s *ReplyScanner) Scan(p []byte) (n int, ended bool, err error) {
	if len(p) == 0 {
		return 0, false, nil
	}
	if !s.inReply {
		s.inReply, s.kind, s.head = true, p[0], s.head[:0]
	}
	for n < len(p) && !ended && err == nil {
		var m int
		if s.payloadRemaining > 0 {
			m = int(min(s.payloadRemaining, uint64(len(p)-n)))
			s.payloadRemaining -= uint64(m)
			ended = s.payloadRemaining == 0 && s.endElement()
		} else {
			m, ended, err = s.scanLine(p[n:])
		}
		n += m
	}
	if room := headSize - len(s.head); s.KeepHead && room > 0 {
		s.head = append(s.head, p[:min(n, room)]...)
	}
	s.inReply = !ended
	return n, ended, err
}

// scanLine consumes a line or a part of it.
func (s *ReplyScanner) scanLine(p []byte) (n int, ended bool, err error) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		return len(p), false, s.keepLine(p)
	}
	line := p[:end]
	if len(s.line) > 0 {
		line = append(s.line, line...)
		s.line = nil
	}
	if len(line) > maxHeader && !isText(line[0]) {
		return end + 1, false, errUnknownReply
	}
	ended, err = s.scanHeader(bytes.TrimSuffix(line, []byte{'\r'}))
	return end + 1, ended, err
}

// keepLine stores the part of an incomplete line that the scanner needs later.
func (s *ReplyScanner) keepLine(p []byte) error {
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

// isText reports whether an element of this kind is one line of any length, whose content the
// scanner does not need.
func isText(kind byte) bool { return kind == '+' || kind == '-' || kind == '(' || kind == ',' }

// scanHeader handles the first line of an element, and reports whether the reply ends with this
// line.
func (s *ReplyScanner) scanHeader(line []byte) (ended bool, err error) {
	if len(line) == 0 {
		return false, errUnknownReply
	}
	switch line[0] {
	case '+', '-', '_', ',', '#', '(':
		return s.endElement(), nil
	case ':':
		s.lastInt, err = strconv.ParseInt(string(line[1:]), 10, 64)
		return s.endElement(), err
	}
	size, ok := replyLength(line[1:])
	if !ok {
		return false, errUnknownReply
	}
	switch line[0] {
	case '$', '=', '!':
		if size < 0 {
			return s.endElement(), nil
		}
		s.payloadRemaining = uint64(size) + 2
	case '*', '~':
		return s.openAggregate(aggregate{remaining: size}), nil
	case '>':
		return s.openAggregate(aggregate{remaining: size, precedesElement: len(s.openAggregates) > 0}), nil
	case '%':
		return s.openAggregate(aggregate{remaining: 2 * size}), nil
	case '|':
		s.openAggregate(aggregate{remaining: 2 * size, precedesElement: true})
	default:
		return false, errUnknownReply
	}
	return false, nil
}

// replyLength parses the number after a type byte: digits, or -1 for a null.
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

// openAggregate begins an aggregate. It reports whether the reply ends with the header of the
// aggregate, because the aggregate is empty.
func (s *ReplyScanner) openAggregate(a aggregate) (ended bool) {
	if a.remaining > 0 {
		s.openAggregates = append(s.openAggregates, a)
		return false
	}
	return !a.precedesElement && s.endElement()
}

// endElement ends an element and the aggregates that end with it, and reports whether the reply has
// ended.
func (s *ReplyScanner) endElement() bool {
	for len(s.openAggregates) > 0 {
		top := &s.openAggregates[len(s.openAggregates)-1]
		if top.remaining--; top.remaining > 0 {
			return false
		}
		precedes := top.precedesElement
		s.openAggregates = s.openAggregates[:len(s.openAggregates)-1]
		if precedes {
			return false
		}
	}
	return true
}

// InReply reports whether a reply has begun and not ended.
func (s *ReplyScanner) InReply() bool { return s.inReply }

// Kind returns the first byte of the current reply, or of the last reply.
func (s *ReplyScanner) Kind() Kind { return Kind(s.kind) }

// LastInt returns the last integer in the reply, or in an earlier reply if the current reply has
// none.
func (s *ReplyScanner) LastInt() int64 { return s.lastInt }

// IsPush reports whether the reply is a RESP3 push.
func (s *ReplyScanner) IsPush() bool { return s.kind == '>' }

// IsError reports whether the reply is an error.
func (s *ReplyScanner) IsError() bool { return s.kind == '-' || s.kind == '!' }

// IsNull reports whether the reply is a null.
func (s *ReplyScanner) IsNull() bool { return s.kind == '_' || s.Begins("*-1") || s.Begins("$-1") }

// IsMonitorLine reports whether the reply is a line of MONITOR, such as
// +1339518083.107412 [0 127.0.0.1:60866] "GET" "x".
func (s *ReplyScanner) IsMonitorLine() bool {
	time, rest, found := bytes.Cut(s.head, []byte{' '})
	return found && s.kind == '+' && bytes.HasPrefix(rest, []byte{'['}) &&
		len(time) > 1 && len(bytes.Trim(time[1:], "0123456789.")) == 0
}

// Begins reports whether the reply begins with these bytes.
func (s *ReplyScanner) Begins(prefix string) bool {
	return bytes.HasPrefix(s.head, []byte(prefix))
}

// Message returns the first element of an array or push if it is a short bulk string, as in *3 $7
// message; else "".
func (s *ReplyScanner) Message() string {
	fields := bytes.SplitN(s.head, []byte("\r\n"), 4)
	if s.kind != '*' && s.kind != '>' || len(fields) < 4 || string(fields[1]) != "$"+strconv.Itoa(len(fields[2])) {
		return ""
	}
	return string(fields[2])
}
