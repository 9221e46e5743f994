// Package syntax is how Redis reads the words of a command: case, numbers and arity, and its
// errors for what it cannot read.
package syntax

import (
	"slices"
	"strconv"
	"strings"
)

// Lower is a word with its ASCII letters in lower case. Redis knows no others: to
// strings.ToLower the Kelvin sign, too, is a k.
func Lower[S ~string | ~[]byte](word S) string {
	for i := range len(word) {
		if isUpper(word[i]) {
			var short [longestName]byte
			folded := append(short[:0], word...) // a copy, also of bytes
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

// Folded is Lower for names and options that Redis compares as C's strcasecmp does: what stands
// after a zero byte does not count. To Redis "STORE\x00x" is the STORE of SORT; and it finds SET by
// "SET\x00x" whenever both fall into one bucket of its table.
func Folded(word []byte) string { return Lower(CString(word, len(word))) }

// CString is what C's %.*s prints: up to n bytes, and not beyond a zero byte.
func CString(s []byte, n int) []byte {
	s = s[:min(len(s), n)]
	if end := slices.Index(s, 0); end >= 0 {
		return s[:end]
	}
	return s
}

// OneLine makes a text fit for a status or an error: line ends become blanks.
func OneLine(text string) string { return lineEnds.Replace(text) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// Int takes what Redis takes: no plus sign, no leading zeros, no -0.
func Int[S ~string | ~[]byte](word S) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(word), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(word)
}

// Fits checks a number of words against an arity: so many, or at least so many where it is
// negative.
func Fits(arity, words int) bool {
	if arity < 0 {
		return words >= -arity
	}
	return words == arity
}

// Strings are words as strings.
func Strings(words [][]byte) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// Bytes are words as they came.
func Bytes(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}

// Distinct drops what is there already.
func Distinct(words []string) []string {
	var once []string
	known := map[string]bool{}
	for _, w := range words {
		if !known[w] {
			known[w] = true
			once = append(once, w)
		}
	}
	return once
}
