// Package syntax reads the words of a command as Redis does: case, numbers and arity. It has Redis'
// errors for words that Redis rejects.
package syntax

import (
	"slices"
	"strconv"
	"strings"
)

// Lower returns a word with its ASCII letters in lower case. Redis folds no other letters, whereas
// strings.ToLower turns the Kelvin sign into a k.
func Lower[S ~string | ~[]byte](word S) string {
	for i := range len(word) {
		if isUpper(word[i]) {
			var buf [maxNameLength]byte
			folded := append(buf[:0], word...) // a copy, because fold changes its argument
			fold(folded)
			return string(folded)
		}
	}
	return string(word)
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }

func fold(word []byte) {
	for i, b := range word {
		if isUpper(b) {
			word[i] = b + 'a' - 'A'
		}
	}
}

// LowerCString is like Lower, for names and options that Redis compares like C's strcasecmp: it
// ignores everything after a zero byte. Redis takes "STORE\x00x" for the STORE of SORT. It also
// finds SET by "SET\x00x" if both fall into the same bucket of its table.
func LowerCString(word []byte) string { return Lower(CString(word, len(word))) }

// CString returns at most n bytes of s, up to the first zero byte, as C prints them with %.*s.
func CString(s []byte, n int) []byte {
	s = s[:min(len(s), n)]
	if end := slices.Index(s, 0); end >= 0 {
		return s[:end]
	}
	return s
}

// OneLine replaces line ends by blanks, so that a text fits into a status or an error.
func OneLine(text string) string { return lineEnds.Replace(text) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// Int parses an integer as Redis does: without plus sign, leading zeros or -0.
func Int[S ~string | ~[]byte](word S) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(word), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(word)
}

// FitsArity reports whether a number of words fits an arity. If the arity is negative, -arity is
// the minimum.
func FitsArity(arity, words int) bool {
	if arity < 0 {
		return words >= -arity
	}
	return words == arity
}

// Strings converts words to strings.
func Strings(words [][]byte) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// Bytes converts words to byte slices.
func Bytes(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}

// Distinct returns the words without repetitions.
func Distinct(words []string) []string {
	var distinctWords []string
	seen := map[string]bool{}
	for _, w := range words {
		if !seen[w] {
			seen[w] = true
			distinctWords = append(distinctWords, w)
		}
	}
	return distinctWords
}
