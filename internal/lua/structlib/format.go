package structlib

import (
	"math"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

const (
	// intSize is that of an integer whose format names no size.
	intSize = 4
	// maxIntSize is the largest that it can name.
	maxIntSize = 32
	// maxAlignment is that of a format which names none.
	maxAlignment = 8
)

// format is what is left of a format to read, and what was read in it that is for all that follows.
type format struct {
	call      *lua.Call
	text      string
	bigEndian bool
	alignment int
}

// formatOf is the first argument, up to a zero byte.
func formatOf(c *lua.Call) format {
	text := clib.UpToZero(c.WantString(1))
	c.State().Work(len(text) * formatWork)
	return format{call: c, text: text, alignment: 1}
}

// formatWork is what an option costs, in bytes gone through.
const formatWork = 16

// option is one step of a format.
type option struct {
	letter byte
	size   int
}

// next reads an option and its size; ok is false at the end.
func (f *format) next() (o option, ok bool) {
	if f.text == "" {
		return o, false
	}
	o.letter, f.text = f.text[0], f.text[1:]
	o.size = f.size(o.letter)
	return o, true
}

func (f *format) size(letter byte) int {
	switch letter {
	case 'b', 'B', 'x':
		return 1
	case 'h', 'H':
		return 2
	case 'f':
		return 4
	case 'l', 'L', 'T', 'd':
		return 8
	case 'c':
		return f.number(1)
	case 'i', 'I':
		size := f.number(intSize)
		if size > maxIntSize {
			f.call.Fail("integral size %d is larger than limit of %d", size, maxIntSize)
		}
		return size
	}
	return 0
}

// number reads the digits that come next; otherwise is for where there are none.
func (f *format) number(otherwise int) int {
	if f.text == "" || !clib.IsDigit(f.text[0]) {
		return otherwise
	}
	n := 0
	for f.text != "" && clib.IsDigit(f.text[0]) {
		if n = n*10 + int(f.text[0]-'0'); n > math.MaxInt32 {
			f.call.Fail("integral size overflow")
		}
		f.text = f.text[1:]
	}
	return n
}

// padding is how many bytes are left out before an option whose place would be at.
func (f *format) padding(o option, at uint64) int {
	if o.size == 0 || o.letter == 'c' {
		return 0
	}
	size := min(o.size, f.alignment)
	return (size - int(at&uint64(size-1))) & (size - 1)
}

// control obeys an option that stands for no value.
func (f *format) control(letter byte) {
	switch letter {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		f.alignment = f.number(maxAlignment)
		if f.alignment <= 0 || f.alignment&(f.alignment-1) != 0 {
			f.call.Fail("alignment %d is not a power of 2", f.alignment)
		}
	default:
		f.call.BadArg(1, "invalid format option '"+string([]byte{letter})+"'")
	}
}
