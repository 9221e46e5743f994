package keyspace

import (
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// digestOf is the digest of a value, as DIGEST returns it and IFDEQ and IFDNE compare it.
func digestOf(text string) string { return fmt.Sprintf("%016x", xxh3.HashString(text)) }

// isDigest reports whether a word is a digest, in any case.
func isDigest(word string) bool {
	return len(word) == 16 && strings.Trim(strings.ToLower(word), "0123456789abcdef") == ""
}

func (c call) digest() Reply {
	sl := c.ask(c.words[1])
	if !sl.present {
		return Reply{}
	}
	return Text(digestOf(sl.text()))
}

// comparison is a condition on the value of a key: that it is like a text, or its digest is, or
// that it is unlike.
type comparison struct {
	digest, unlike bool
	like           string
}

// parseComparison reads IFEQ, IFNE, IFDEQ and IFDNE, in any case, with what stands behind them.
func parseComparison(words []string) (cmp comparison, ok bool) {
	if len(words) < 2 {
		return cmp, false
	}
	switch strings.ToLower(words[0]) {
	case "ifeq":
	case "ifne":
		cmp.unlike = true
	case "ifdeq":
		cmp.digest = true
	case "ifdne":
		cmp.digest, cmp.unlike = true, true
	default:
		return cmp, false
	}
	cmp.like = words[1]
	return cmp, true
}

// check refuses to compare a digest with what is none.
func (c comparison) check() {
	require(!c.digest || isDigest(c.like), "ERR digest must be exactly 16 hexadecimal characters")
}

// holds reports whether it is true of a key with this value, or of an absent one.
func (c comparison) holds(text string, present bool) bool {
	switch {
	case !present:
		return c.unlike
	case c.digest:
		return strings.EqualFold(digestOf(text), c.like) != c.unlike
	}
	return (text == c.like) != c.unlike
}
