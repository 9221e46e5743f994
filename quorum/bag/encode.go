package bag

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// mark begins what is a bag. It is of the marks of commands/lockkeys/keyspace/contents, and no
// content: a version of the proxy that knows of no bags reads it as none that it can read, and no
// client's text begins so.
const mark = "\x00redlock:b"

// ErrUnreadable is returned for a text that is marked as a bag and yet none that this version has
// written.
var ErrUnreadable = errors.New("what is kept beside other keys is not what any proxy of this version has written")

// Is reports whether a value is a bag.
func Is(text string) bool { return strings.HasPrefix(text, mark) }

// member is a key in a bag.
type member struct {
	name, value, version string
	// before is how long before the cell it ends, in whole milliseconds; Endless: never.
	before time.Duration
}

// encode writes members, which are in the order of their names, behind an empty text (where earlier
// versions have one).
func encode(members []member) string {
	size := len(mark) + 1
	for _, m := range members {
		size += len(m.name) + len(m.version) + len(m.value) + 4*binary.MaxVarintLen64
	}
	b := append(make([]byte, 0, size), mark...)
	b = appendText(b, "")
	for _, m := range members {
		b = appendText(b, m.name)
		b = appendText(b, m.version)
		b = binary.AppendUvarint(b, m.distance())
		b = appendText(b, m.value)
	}
	return string(b)
}

// distance is a number for before: 0 for Endless, and else one more than its milliseconds.
func (m member) distance() uint64 {
	if m.before == Endless {
		return 0
	}
	return uint64(m.before.Milliseconds()) + 1
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// longestBefore bounds what is read: about as long as a time can be.
const longestBefore = 200 * year

// decode reads what encode wrote, also with a text in front. Of anything else the error is
// ErrUnreadable.
func decode(text string) (members []member, err error) {
	r := reader{rest: text[len(mark):]}
	r.text()
	written := r.rest
	for r.rest != "" && !r.failed {
		m := member{name: r.text(), version: r.text()}
		ms := r.number()
		switch {
		case ms == 0:
			m.before = Endless
		case ms > uint64(longestBefore.Milliseconds()):
			r.failed = true
		default:
			m.before = time.Duration(ms-1) * time.Millisecond
		}
		m.value = r.text()
		if n := len(members); n > 0 && members[n-1].name >= m.name {
			r.failed = true
		}
		members = append(members, m)
	}
	if r.failed || len(members) == 0 || encode(members)[len(mark)+1:] != written {
		return nil, ErrUnreadable
	}
	return members, nil
}

// reader reads the parts of a text one after the other.
type reader struct {
	rest   string
	failed bool
}

func (r *reader) number() uint64 {
	head := r.rest[:min(len(r.rest), binary.MaxVarintLen64)]
	n, size := binary.Uvarint([]byte(head))
	if size <= 0 {
		r.failed, r.rest = true, ""
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, ""
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}
