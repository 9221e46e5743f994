package keygroup

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// These prefixes begin the values that this package writes. They have the same length, and differ
// from the prefixes of commands/lockkeys/keyspace/contents, which have the same form. A version
// that does not know a prefix cannot read the value. No text of a client begins with a prefix.
const (
	// prefix begins a keygroup.
	prefix = "\x00redlock:b"
	// holdersPrefix begins the holders of a lock, each with an expiry of its own.
	holdersPrefix = "\x00redlock:m"
	// lonePrefix begins the only holder of a lock, which expires with the value.
	lonePrefix = "\x00redlock:o"
)

// ErrUnreadable means that a value begins like a keygroup or like holders, but this version cannot
// read it.
var ErrUnreadable = errors.New("the keys of one hash tag are unreadable: a different version of the proxy wrote them; " +
	"upgrade this proxy")

// IsGroup reports whether a value is a keygroup.
func IsGroup(text string) bool { return strings.HasPrefix(text, prefix) }

// HasExpiries reports whether a value holds keys or holders with expiries of their own, which are
// relative to the expiry of the value.
func HasExpiries(text string) bool { return IsGroup(text) || strings.HasPrefix(text, holdersPrefix) }

type member struct {
	name, value, version string
	// expiryOffset is the time from the expiry of the key to the expiry of the cell, in whole
	// milliseconds. NoExpiry means that the key never expires.
	expiryOffset time.Duration
}

// encode encodes members, sorted by name, after a prefix. It writes an empty text between the
// prefix and the members, because earlier versions wrote a text in this place.
func encode(prefix string, members []member) string {
	size := len(prefix) + 1
	for _, m := range members {
		size += len(m.name) + len(m.version) + len(m.value) + 4*binary.MaxVarintLen64
	}
	b := append(make([]byte, 0, size), prefix...)
	b = appendText(b, "")
	for _, m := range members {
		b = appendText(b, m.name)
		b = appendText(b, m.version)
		b = binary.AppendUvarint(b, m.encodedExpiryOffset())
		b = appendText(b, m.value)
	}
	return string(b)
}

// encodedExpiryOffset returns 0 for NoExpiry, or the expiry offset in milliseconds plus one.
func (m member) encodedExpiryOffset() uint64 {
	if m.expiryOffset == NoExpiry {
		return 0
	}
	return uint64(m.expiryOffset.Milliseconds()) + 1
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// maxExpiryOffset limits decoded expiry offsets to about the longest Duration.
const maxExpiryOffset = 200 * year

// decode decodes a text that encode or an earlier version wrote. Otherwise it returns
// ErrUnreadable.
func decode(text string) (members []member, err error) {
	r := reader{rest: text[len(prefix):]}
	r.text()
	encoded := r.rest
	for r.rest != "" && !r.failed {
		m := member{name: r.text(), version: r.text()}
		ms := r.number()
		switch {
		case ms == 0:
			m.expiryOffset = NoExpiry
		case ms > uint64(maxExpiryOffset.Milliseconds()):
			r.failed = true
		default:
			m.expiryOffset = time.Duration(ms-1) * time.Millisecond
		}
		m.value = r.text()
		if n := len(members); n > 0 && members[n-1].name >= m.name {
			r.failed = true
		}
		members = append(members, m)
	}
	if r.failed || len(members) == 0 || encode(prefix, members)[len(prefix)+1:] != encoded {
		return nil, ErrUnreadable
	}
	return members, nil
}

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
