// Package bits is the arithmetic of Redis' bit commands on strings of bytes: bit 0 is the highest one of the first byte, and past
// the end of a string all bits are 0.
package bits

import "math/bits"

// Get is the bit at an offset, 0 or 1.
func Get[Text ~string | ~[]byte](text Text, offset uint64) int64 {
	if offset>>3 >= uint64(len(text)) {
		return 0
	}
	return int64(text[offset>>3] >> (7 - offset&7) & 1)
}

// Set sets or clears the bit at an offset, which the text reaches.
func Set(text []byte, offset uint64, on bool) {
	mask := byte(1) << (7 - offset&7)
	if on {
		text[offset>>3] |= mask
	} else {
		text[offset>>3] &^= mask
	}
}

// Grown is a copy of a text, with so many bits at least.
func Grown(text string, size uint64) []byte {
	grown := make([]byte, max(uint64(len(text)), (size+7)>>3))
	copy(grown, text)
	return grown
}

// Count counts the bits that are set from one offset to another, both included and within the text.
func Count(text string, from, to int64) (n int64) {
	if from > to {
		return 0
	}
	first, last := from>>3, to>>3
	for i := first; i <= last; i++ {
		n += int64(bits.OnesCount8(text[i] & within(i, from, to)))
	}
	return n
}

// within has those bits of a byte set that lie from one offset to another.
func within(i, from, to int64) byte {
	mask := byte(0xff)
	if i == from>>3 {
		mask >>= from & 7
	}
	if i == to>>3 {
		mask &= 0xff << (7 - to&7)
	}
	return mask
}

// Find is the offset of the first bit that is set, or, if not on, of the first one that is not, from one offset to another, both
// included and within the text; -1 where there is none.
func Find(text string, on bool, from, to int64) int64 {
	for i := from >> 3; i <= to>>3 && from <= to; i++ {
		wanted := text[i]
		if !on {
			wanted = ^wanted
		}
		if wanted &= within(i, from, to); wanted != 0 {
			return i<<3 + int64(bits.LeadingZeros8(wanted))
		}
	}
	return -1
}

// Op is how texts are combined bit by bit.
type Op uint8

// The ways.
const (
	And Op = iota
	Or
	Xor
	Not // of one text
)

// Combine combines texts bit by bit. The result has a size that none of them exceeds: those that are shorter have zeros behind their
// end.
func Combine(op Op, size int, texts ...string) []byte {
	result := make([]byte, size)
	for i, text := range texts {
		if i == 0 {
			copy(result, text)
		} else {
			op.into(result, text)
		}
	}
	if op == Not {
		for i, b := range result {
			result[i] = ^b
		}
	}
	return result
}

// into combines a text that is not longer with what there is.
func (op Op) into(result []byte, text string) {
	switch op {
	case And:
		for i := range len(text) {
			result[i] &= text[i]
		}
		clear(result[len(text):])
	case Or:
		for i := range len(text) {
			result[i] |= text[i]
		}
	case Xor:
		for i := range len(text) {
			result[i] ^= text[i]
		}
	}
}
