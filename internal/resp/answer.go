package resp

import (
	"bytes"
	"strconv"
)

// HasPrefix reports whether the reply begins with these bytes.
func HasPrefix(reply []byte, prefix string) bool { return bytes.HasPrefix(reply, []byte(prefix)) }

// FirstLine returns the first line of a reply, without the type byte and the CRLF.
func FirstLine(reply []byte) string {
	line, _, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) == 0 {
		return ""
	}
	return string(line[1:])
}

// Texts returns all statuses and strings in a complete reply, in order, at any depth.
func Texts(reply []byte) (texts []string) {
	for len(reply) > 0 {
		line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
		reply = rest
		if len(line) == 0 {
			continue
		}
		switch line[0] {
		case '+':
			texts = append(texts, string(line[1:]))
		case '$', '=':
			n, err := strconv.Atoi(string(line[1:]))
			if err != nil || n < 0 || n > len(rest) {
				continue
			}
			texts = append(texts, string(rest[:n]))
			reply = rest[n:]
		}
	}
	return texts
}

// FirstError returns the text of the first error among the elements of an array, or "" if no
// element is an error. If an element is incomplete or invalid, FirstError returns a description of this fault. If
// the reply is not an array, FirstError returns the first line of the reply.
func FirstError(reply []byte) string {
	if !HasPrefix(reply, "*") || HasPrefix(reply, "*-1") {
		return FirstLine(reply)
	}
	rest := reply[min(len(reply), len(FirstLine(reply))+3):] // after the first line
	for len(rest) > 0 {
		n := WholeReplyLen(rest)
		if n == 0 {
			return "the answer is not a valid reply"
		}
		if rest[0] == '-' {
			return FirstLine(rest[:n])
		}
		rest = rest[n:]
	}
	return ""
}

// Header reads the first line of a reply, if it is a type byte and a number. It returns the number
// and the bytes after the line. ok is false for any other line, a negative number and a null.
func Header(reply []byte) (n int, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(reply, []byte("\r\n"))
	if !found || len(line) == 0 {
		return 0, nil, false
	}
	size, ok := replyLength(line[1:])
	return int(size), rest, ok && size >= 0
}

// WholeReplyLen returns the length in bytes of the reply at the beginning of p. It returns 0 if the
// reply is incomplete or invalid.
func WholeReplyLen(p []byte) int {
	var s ReplyScanner
	n, ended, err := s.Scan(p)
	if !ended || err != nil {
		return 0
	}
	return n
}

// maxSimpleDigits limits the digits of a number in SimpleReplyLen, so that no number overflows.
const maxSimpleDigits = 9

// SimpleReplyLen returns the length in bytes of the reply at the beginning of p if it is complete
// and simple: a status, an error, a bulk string, a null bulk string, or an integer that is not
// negative. It returns 0 for any other reply, and if a number has more than maxSimpleDigits digits.
// A [ReplyScanner] finds the same length, but takes five times as long.
func SimpleReplyLen(p []byte) int {
	if len(p) < 4 {
		return 0
	}
	switch p[0] {
	case '+', '-':
		return bytes.IndexByte(p, '\n') + 1
	case ':':
		_, n := simpleNumber(p)
		return n
	case '$':
		if p[1] == '-' && bytes.HasPrefix(p, []byte("$-1\r\n")) {
			return len("$-1\r\n")
		}
		size, n := simpleNumber(p)
		if n > 0 && size+2 <= len(p)-n {
			return n + size + 2
		}
	}
	return 0
}

// simpleNumber reads a header line such as "$5\r\n". n is the length of the line, or 0 for any
// other text.
func simpleNumber(p []byte) (number, n int) {
	for n = 1; n < len(p) && n <= maxSimpleDigits && p[n]-'0' <= 9; n++ {
		number = number*10 + int(p[n]-'0')
	}
	if n == 1 || n+2 > len(p) || p[n] != '\r' || p[n+1] != '\n' {
		return 0, 0
	}
	return number, n + 2
}
