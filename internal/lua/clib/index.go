package clib

import "strings"

// IndexWork is the cost of Index for each byte of the text and the part, in bytes processed.
const IndexWork = 2

// shortPart is the maximum length of a part for which strings.Index takes linear time.
const shortPart = 32

// Index returns the index of the first occurrence of part in text, or -1. Unlike strings.Index, it
// always takes linear time: for a long part, it uses the algorithm of Knuth, Morris and Pratt.
func Index(text, part string) int {
	if len(part) <= shortPart || len(part) > len(text) {
		return strings.Index(text, part)
	}
	borders := bordersOf(part)
	matched := 0
	for i := range len(text) {
		for matched > 0 && text[i] != part[matched] {
			matched = int(borders[matched-1])
		}
		if text[i] == part[matched] {
			matched++
		}
		if matched == len(part) {
			return i + 1 - len(part)
		}
	}
	return -1
}

// bordersOf returns, for each prefix of a text, the length of its longest border: a shorter prefix
// that is also its suffix.
func bordersOf(text string) []int32 {
	borders := make([]int32, len(text))
	n := 0
	for i := 1; i < len(text); i++ {
		for n > 0 && text[i] != text[n] {
			n = int(borders[n-1])
		}
		if text[i] == text[n] {
			n++
		}
		borders[i] = int32(n)
	}
	return borders
}
