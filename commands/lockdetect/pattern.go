package lockdetect

import (
	"slices"
	"strings"
)

const (
	// maxSegment limits the length of the parts of a key that a pattern keeps, in bytes. * replaces
	// longer parts.
	maxSegment = 24
	// maxSegments limits the parts of a pattern.
	maxSegments = 8
)

// pattern returns a glob for keys like this one, valid for lock-keys, and its prefix up to the
// first separator. It replaces parts that probably differ from key to key by *: long parts, and
// parts with any character that is not an ASCII letter.
func pattern(key []byte) (glob, prefix string) {
	for segments := 0; len(key) > 0; segments++ {
		n := 0
		for n < len(key) && !isSeparator(key[n]) {
			n++
		}
		switch {
		case segments == maxSegments:
			glob = appendStar(glob)
			key, n = nil, 0
		case n > maxSegment || !allLetters(key[:n]):
			glob = appendStar(glob)
		default:
			glob += string(key[:n])
		}
		if key = key[n:]; len(key) > 0 {
			glob += string(key[0])
			key = key[1:]
		}
		if prefix == "" {
			prefix = glob
		}
	}
	if glob == "" {
		return "*", "*"
	}
	return glob, prefix
}

// appendStar returns the beginning of a glob followed by *. If the glob ends with a dot that does
// not follow a letter or *, ? replaces the dot, because .* would look like a regular expression.
func appendStar(s string) string {
	if n := len(s); n > 0 && s[n-1] == '.' && (n == 1 || s[n-2] != '*' && !isLetter(s[n-2])) {
		s = s[:n-1] + "?"
	}
	return s + "*"
}

// isSeparator reports whether a character separates the parts of keys.
func isSeparator(c byte) bool { return strings.IndexByte(":/.|#-_{}@=~", c) >= 0 }

func allLetters(segment []byte) bool {
	return !slices.ContainsFunc(segment, func(c byte) bool { return !isLetter(c) })
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
