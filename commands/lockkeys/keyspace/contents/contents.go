package contents

import "redlock-proxy/commands/catalog/syntax"

// Kind is which kind of contents it is.
type Kind uint8

// The kinds.
const (
	TextKind Kind = iota
	ListKind
	SetKind
	SortedSetKind
	HashKind
)

// String is the name that TYPE has for it.
func (k Kind) String() string { return kinds[k].name }

// Content is what a key holds: a Text, *List, *Set, *SortedSet or *Hash. A nil pointer to one of
// the latter has no elements, and must not be changed. It is for one goroutine.
type Content interface {
	// Kind is which of them it is.
	Kind() Kind
	// Len counts its elements. A collection without any is no content of a key.
	Len() int
	// Size is how many bytes it has for the quorum.
	Size() int
	// Encoding is what a Redis 7.0 with its default limits calls the form in which it would keep
	// such a content.
	Encoding() string

	appendTo(b []byte) []byte
}

// Text is a string.
type Text string

// Kind is TextKind.
func (t Text) Kind() Kind { return TextKind }

// Len is 1.
func (t Text) Len() int { return 1 }

// Size counts its bytes, and the mark of a text that needs one.
func (t Text) Size() int {
	if IsMarked(string(t)) {
		return markSize + len(t)
	}
	return len(t)
}

// Encoding is int, embstr or raw.
func (t Text) Encoding() string {
	const longestEmbedded = 44
	switch {
	case isNumber(string(t)):
		return "int"
	case len(t) <= longestEmbedded:
		return "embstr"
	default:
		return "raw"
	}
}

func (t Text) appendTo(b []byte) []byte { return append(b, t...) }

// isNumber is true of an integer as Redis writes it.
func isNumber(text string) bool {
	const longest = len("-9223372036854775808")
	if text == "" || len(text) > longest || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	_, ok := syntax.Int(text)
	return ok
}

// The limits up to which a Redis keeps a collection in its compact form.
const (
	compactEntries       = 512 // of a hash or of a set of numbers
	compactSortedEntries = 128
	compactBytes         = 64 // of each part
)
