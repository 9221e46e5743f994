package keyspace

import (
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// digestOf returns the digest of a value, as DIGEST returns it and IFDEQ and IFDNE compare it.
func digestOf(text string) string { return fmt.Sprintf("%016x", xxh3.HashString(text)) }

// isDigest reports whether a word is a digest, in upper or lower case.
func isDigest(word string) bool {
	return len(word) == 16 && strings.Trim(strings.ToLower(word), "0123456789abcdef") == ""
}

func (c call) digest() Reply {
	k := c.observe(c.words[1])
	if !k.present {
		return Reply{}
	}
	return BulkReply(digestOf(k.text()))
}

// comparison holds a condition on the value of a key, or on the digest of this value: it equals
// text or, if negated is true, differs from text.
type comparison struct {
	isDigestComparison, negated bool
	text                        string
}

// parseComparison parses IFEQ, IFNE, IFDEQ or IFDNE, in upper or lower case, and the next word.
func parseComparison(words []string) (cmp comparison, ok bool) {
	if len(words) < 2 {
		return cmp, false
	}
	switch strings.ToLower(words[0]) {
	case "ifeq":
	case "ifne":
		cmp.negated = true
	case "ifdeq":
		cmp.isDigestComparison = true
	case "ifdne":
		cmp.isDigestComparison, cmp.negated = true, true
	default:
		return cmp, false
	}
	cmp.text = words[1]
	return cmp, true
}

// check refuses to compare a digest with a word that is not a digest.
func (c comparison) check() {
	require(!c.isDigestComparison || isDigest(c.text), "ERR digest must be exactly 16 hexadecimal characters")
}

// holds reports whether the condition is true for a key with this value, or for an absent key.
func (c comparison) holds(text string, present bool) bool {
	switch {
	case !present:
		return c.negated
	case c.isDigestComparison:
		return strings.EqualFold(digestOf(text), c.text) != c.negated
	}
	return (text == c.text) != c.negated
}
