package translate

import (
	"bytes"
	"strconv"

	"redlock-proxy/internal/resp"
)

// maxDepth limits how deep a reply may be nested. CLUSTER SHARDS of RESP3 has a depth of 4.
const maxDepth = 8

// element is an element of a reply: a line, a text, or a list of elements. Maps alternate names and
// values.
type element struct {
	kind     byte
	line     []byte    // the line after the kind, if the element is one line or a null
	text     []byte    // the text of a string, verbatim string or long error
	children []element // the elements of an array, map, set or push
}

// parse reads a whole reply. ok is false for anything else.
func parse(reply []byte) (e element, ok bool) {
	e, rest, ok := parseElement(reply, maxDepth)
	return e, ok && len(rest) == 0
}

func parseElement(p []byte, depth int) (e element, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(p, []byte("\r\n"))
	if !found || len(line) == 0 || depth == 0 {
		return element{}, nil, false
	}
	e = element{kind: line[0], line: line[1:]}
	switch e.kind {
	case '+', '-', ':', '_', ',', '#', '(':
		return e, rest, true
	case '$', '=', '!', '*', '%', '~', '>':
	default:
		return element{}, nil, false
	}
	if string(e.line) == "-1" {
		return e, rest, true
	}
	n, err := strconv.ParseUint(string(e.line), 10, 31)
	switch {
	case err != nil:
		return element{}, nil, false
	case e.kind == '$' || e.kind == '=' || e.kind == '!':
		if size := int(n); size <= len(rest)-2 && string(rest[size:size+2]) == "\r\n" {
			return element{kind: e.kind, text: rest[:size:size]}, rest[size+2:], true
		}
		return element{}, nil, false
	case e.kind == '%':
		n *= 2
	}
	e.line = nil
	for range n {
		var child element
		if child, rest, ok = parseElement(rest, depth-1); !ok {
			return element{}, nil, false
		}
		e.children = append(e.children, child)
	}
	return e, rest, true
}

// appendTo appends the element to b in RESP.
func (e element) appendTo(b []byte) []byte {
	switch {
	case e.line != nil:
		return append(append(append(b, e.kind), e.line...), '\r', '\n')
	case e.kind == '$' || e.kind == '=' || e.kind == '!':
		b = resp.AppendHeader(b, resp.Kind(e.kind), int64(len(e.text)))
		return append(append(b, e.text...), '\r', '\n')
	}
	n := len(e.children)
	if e.kind == '%' {
		n /= 2
	}
	b = resp.AppendHeader(b, resp.Kind(e.kind), int64(n))
	for _, child := range e.children {
		b = child.appendTo(b)
	}
	return b
}

// isList reports whether the element has elements: an array, a map, a set or a push.
func (e element) isList() bool {
	return e.line == nil && (e.kind == '*' || e.kind == '%' || e.kind == '~' || e.kind == '>')
}

// isPairs reports whether the element alternates names and values: a map, or its form in RESP2.
func (e element) isPairs() bool { return e.isList() && len(e.children)%2 == 0 }

// value returns the text of a string, a status or a number; empty for a null.
func (e element) value() string {
	switch {
	case e.text != nil:
		return string(e.text)
	case e.kind == '+' || e.kind == ':':
		return string(e.line)
	}
	return ""
}

func stringElement(text string) element { return element{kind: '$', text: []byte(text)} }

func numberElement(n int) element {
	return element{kind: ':', line: strconv.AppendInt(nil, int64(n), 10)}
}

// body returns the text of a string, or of a verbatim string after its format. withBody returns the
// same kind of element with another text.
func (e element) body() (text string, ok bool) {
	switch {
	case e.kind == '$' && e.line == nil:
		return string(e.text), true
	case e.kind == '=' && len(e.text) >= len("txt:"):
		return string(e.text[len("txt:"):]), true
	}
	return "", false
}

func (e element) withBody(text string) element {
	if e.kind == '=' {
		text = string(e.text[:len("txt:")]) + text
	}
	return element{kind: e.kind, text: []byte(text)}
}
