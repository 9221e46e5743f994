package lockdetect

import (
	"slices"
	"strings"
)

const (
	// maxSegment is the length over which a part of a key is taken to differ from key to
	// key, as one with a digit is.
	maxSegment = 24
	// maxSegments bounds a pattern.
	maxSegments = 8
)

// pattern is a glob for the kind of key that this is, as lock-keys takes it, and its
// beginning up to the first separator. What is likely to differ from key to key stands as
// *: parts with a digit, long ones, and characters that mean something in globs.
func pattern(key []byte) (glob, head string) {
	for segments := 0; len(key) > 0; segments++ {
		n := 0
		for n < len(key) && !separates(key[n]) {
			n++
		}
		switch {
		case segments == maxSegments:
			glob = starred(glob)
			key, n = nil, 0
		case n > maxSegment || !allLetters(key[:n]):
			glob = starred(glob)
		default:
			glob += string(key[:n])
		}
		if key = key[n:]; len(key) > 0 {
			glob += string(key[0])
			key = key[1:]
		}
		if head == "" {
			head = glob
		}
	}
	if glob == "" {
		return "*", "*"
	}
	return glob, head
}

// starred is the beginning of a glob with * after it. A dot in between that is not the
// end of a word would make it look like a regular expression.
func starred(s string) string {
	if n := len(s); n > 0 && s[n-1] == '.' && (n == 1 || s[n-2] != '*' && !isLetter(s[n-2])) {
		s = s[:n-1] + "?"
	}
	return s + "*"
}

// separates is true of what stands between the parts of keys.
func separates(c byte) bool { return strings.IndexByte(":/.|#-_{}@=~", c) >= 0 }

func allLetters(segment []byte) bool {
	return !slices.ContainsFunc(segment, func(c byte) bool { return !isLetter(c) })
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
