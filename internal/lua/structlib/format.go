package structlib

import (
	"math"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

const (
	// intSize is the default size of an integer, in bytes.
	intSize = 4
	// maxIntSize is the maximum size of an integer, in bytes.
	maxIntSize = 32
	// defaultAlignment is the alignment that a ! without a number sets, in bytes.
	defaultAlignment = 8
)

// format holds the unread part of a format string, with the current byte order and alignment.
type format struct {
	call      *lua.Call
	text      string
	bigEndian bool
	alignment int
}

// formatOf returns the format in the first argument. A zero byte ends it.
func formatOf(c *lua.Call) format {
	text := clib.CutAtZero(c.WantString(1))
	c.State().Work(len(text) * formatWork)
	return format{call: c, text: text, alignment: 1}
}

// formatWork is the cost of each character of a format, in bytes processed.
const formatWork = 16

type option struct {
	letter byte
	size   int
}

// nextOption reads an option and its size; ok is false at the end.
func (f *format) nextOption() (o option, ok bool) {
	if f.text == "" {
		return o, false
	}
	o.letter, f.text = f.text[0], f.text[1:]
	o.size = f.optionSize(o.letter)
	return o, true
}

func (f *format) optionSize(letter byte) int {
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
		return f.readInt(1)
	case 'i', 'I':
		size := f.readInt(intSize)
		if size > maxIntSize {
			f.call.Fail("integral size %d is larger than limit of %d", size, maxIntSize)
		}
		return size
	}
	return 0
}

// readInt reads the digits at the beginning of the text. It returns fallback if there are none.
func (f *format) readInt(fallback int) int {
	if f.text == "" || !clib.IsDigit(f.text[0]) {
		return fallback
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

// padding returns the number of padding bytes before an option at an offset.
func (f *format) padding(o option, offset uint64) int {
	if o.size == 0 || o.letter == 'c' {
		return 0
	}
	size := min(o.size, f.alignment)
	return (size - int(offset&uint64(size-1))) & (size - 1)
}

// applyControl applies an option without a value, such as the byte order.
func (f *format) applyControl(letter byte) {
	switch letter {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		f.alignment = f.readInt(defaultAlignment)
		if f.alignment <= 0 || f.alignment&(f.alignment-1) != 0 {
			f.call.Fail("alignment %d is not a power of 2", f.alignment)
		}
	default:
		f.call.RaiseBadArg(1, "invalid format option '"+string([]byte{letter})+"'")
	}
}
