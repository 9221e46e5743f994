package redirect

import (
	"bytes"
	"strconv"
)

// maxHeader is longer than any valid line with a length.
const maxHeader = 64

// elementFilter finds redirects among the elements of an array, at any depth. It ignores how the
// elements are nested, because an error has the same form at every depth.
type elementFilter struct {
	head             []byte // the beginning of an element whose first line is incomplete
	payloadRemaining int64  // bytes that are left of a string, with its CRLF
	inError          bool   // inside an error, which goes through errorFilter
	errorFilter      *Filter
	// errorRemaining is the number of bytes that are left of a long error; 0 for an error in one
	// line.
	errorRemaining int64
	// inLine is set inside a line that is passed on.
	inLine bool
}

// FilterElements returns the bytes that the client gets in place of the next piece of an array, or
// of a stream of elements. kinds holds the kinds of the redirects in it that were not translated.
func (f *Filter) FilterElements(piece []byte) (replacement []byte, kinds []string) {
	e := &f.elements
	if e.errorFilter == nil {
		e.errorFilter = &Filter{Enabled: f.Enabled, Nodes: f.Nodes}
	}
	out := make([]byte, 0, len(piece))
	for len(piece) > 0 {
		var n int
		var part []byte
		var kind string
		switch {
		case e.payloadRemaining > 0:
			n = int(min(e.payloadRemaining, int64(len(piece))))
			e.payloadRemaining -= int64(n)
			part = piece[:n]
		case e.inError:
			n, part, kind = e.filterError(piece)
		case e.inLine:
			n = lineLen(piece)
			e.inLine = piece[n-1] != '\n'
			part = piece[:n]
		default:
			n, part = e.beginElement(piece)
		}
		if kind != "" {
			kinds = append(kinds, kind)
		}
		out, piece = append(out, part...), piece[n:]
	}
	return out, kinds
}

// lineLen returns the length of the rest of a line, as far as it has arrived.
func lineLen(piece []byte) int {
	if end := bytes.IndexByte(piece, '\n'); end >= 0 {
		return end + 1
	}
	return len(piece)
}

// beginElement handles the first line of an element.
func (e *elementFilter) beginElement(piece []byte) (n int, part []byte) {
	if len(e.head) == 0 {
		switch piece[0] {
		case '-':
			e.inError = true
			return 0, nil
		case '+', ':', '_', ',', '#', '(':
			e.inLine = true
			return 0, nil
		}
	}
	n = lineLen(piece)
	e.head = append(e.head, piece[:n]...)
	if piece[n-1] != '\n' && len(e.head) <= maxHeader {
		return n, nil
	}
	head := e.head
	e.head = nil
	size, err := strconv.ParseInt(string(bytes.TrimRight(head[1:], "\r\n")), 10, 64)
	switch {
	case err != nil || size < 0:
	case head[0] == '$' || head[0] == '=':
		e.payloadRemaining = size + 2
	case head[0] == '!':
		e.inError, e.errorRemaining = true, int64(len(head))+size+2
		_, part, _ = e.filterError(head)
		return n, part
	}
	return n, head
}

// filterError passes a piece of an error through the filter of errors.
func (e *elementFilter) filterError(piece []byte) (n int, part []byte, kind string) {
	n, ended := lineLen(piece), false
	if e.errorRemaining > 0 {
		n = int(min(e.errorRemaining, int64(len(piece))))
		e.errorRemaining -= int64(n)
		ended = e.errorRemaining == 0
	} else {
		ended = piece[n-1] == '\n'
	}
	part, kind = e.errorFilter.Filter(piece[:n], ended)
	e.inError = !ended
	return n, part, kind
}
