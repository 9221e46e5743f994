package clib

import "strings"

// IndexWork is what Index costs for a byte of either text, in bytes gone through.
const IndexWork = 2

// shortPart is up to how long a part is that strings.Index looks for in linear time.
const shortPart = 32

// Index is where a part is in a text for the first time, or -1. Unlike strings.Index it is linear
// in both, whatever they are: it is Knuth's, Morris' and Pratt's way.
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

// bordersOf are, for each beginning of a text, how long the longest other beginning is that it ends
// with.
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
