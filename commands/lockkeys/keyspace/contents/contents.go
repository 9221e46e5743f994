package contents

import "redlock-proxy/commands/catalog/syntax"

// Kind is the type of a content.
type Kind uint8

// The types.
const (
	TextKind Kind = iota
	ListKind
	SetKind
	SortedSetKind
	HashKind
	HoldersKind
	LoneHolderKind
)

// String returns the type's name, as TYPE returns it.
func (k Kind) String() string { return kinds[k].name }

// Content is the value of a key: a Text, *List, *Set, *SortedSet, *Hash or Holders. A nil pointer
// to a collection is an empty collection, and must not be changed. A Content is not safe for
// concurrent use.
type Content interface {
	// Kind returns the type.
	Kind() Kind
	// Len returns the number of elements. No key holds an empty collection.
	Len() int
	// Size returns the bytes of the encoded content.
	Size() int
	// Encoding returns the encoding that a Redis 7.0 with its default limits would use, as OBJECT
	// ENCODING returns it.
	Encoding() string

	appendTo(b []byte) []byte
}

// Holders is a lock that several clients can hold (LOCK … SHARED and SLOTS). Only package
// quorum/keygroup reads and writes its holders. For commands it is a value of another type.
type Holders struct {
	kind Kind
	rest string // the encoded holders, without the mark and the letter
}

// Kind implements Content.
func (h Holders) Kind() Kind { return h.kind }

// Len implements Content. It returns 1.
func (h Holders) Len() int { return 1 }

// Size implements Content.
func (h Holders) Size() int { return markSize + len(h.rest) }

// Encoding implements Content.
func (h Holders) Encoding() string { return "raw" }

func (h Holders) appendTo(b []byte) []byte { return append(b, h.rest...) }

// Text is a string.
type Text string

// Kind implements Content.
func (t Text) Kind() Kind { return TextKind }

// Len implements Content. It returns 1.
func (t Text) Len() int { return 1 }

// Size implements Content.
func (t Text) Size() int {
	if IsMarked(string(t)) {
		return markSize + len(t)
	}
	return len(t)
}

// Encoding implements Content: int, embstr or raw.
func (t Text) Encoding() string {
	const maxEmbeddedLen = 44
	switch {
	case isNumber(string(t)):
		return "int"
	case len(t) <= maxEmbeddedLen:
		return "embstr"
	default:
		return "raw"
	}
}

func (t Text) appendTo(b []byte) []byte { return append(b, t...) }

// isNumber reports whether a text is an integer as Redis writes it.
func isNumber(text string) bool {
	const maxNumberLen = len("-9223372036854775808")
	if text == "" || len(text) > maxNumberLen || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	_, ok := syntax.Int(text)
	return ok
}

// Redis keeps a collection in its compact form up to these limits.
const (
	compactEntries       = 512 // for a hash or a set of numbers
	compactSortedEntries = 128
	compactBytes         = 64 // for each element
)
