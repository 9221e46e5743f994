package bits

import (
	"math"

	"redlock-proxy/commands/syntax"
)

// Field is the type of an integer with some bits: i8, u5 and so on.
type Field struct {
	Signed bool
	// Width is 1 to 64, or to 63 where it is not signed.
	Width int64
}

// ParseField reads the name of a type; what stands behind a zero byte does not count.
func ParseField(word string) (f Field, ok bool) {
	if word == "" || word[0] != 'i' && word[0] != 'u' {
		return f, false
	}
	f.Signed = word[0] == 'i'
	f.Width, ok = syntax.Int(syntax.CString([]byte(word[1:]), len(word)))
	return f, ok && f.Width >= 1 && (f.Width < 64 || f.Signed && f.Width == 64)
}

// longest is how many bytes a text of Redis may have, by its default.
const longest = 512 << 20

// ParseOffset reads the offset of a bit.
func ParseOffset(word string) (offset uint64, ok bool) {
	n, ok := syntax.Int(word)
	return uint64(n), ok && n >= 0 && n>>3 < longest
}

// ParseOffset reads the offset of a field: of a bit, or, after #, how many such fields lie before it.
func (f Field) ParseOffset(word string) (offset uint64, ok bool) {
	if word == "" || word[0] != '#' {
		return ParseOffset(word)
	}
	n, ok := syntax.Int(word[1:])
	n *= f.Width // which may be too large for its type: so it is in Redis
	return uint64(n), ok && n >= 0 && n>>3 < longest
}

// End is the offset of the first bit behind a field.
func (f Field) End(offset uint64) uint64 { return offset + uint64(f.Width) }

// FieldOf is the field at an offset of a text, which may be shorter.
func FieldOf[Text ~string | ~[]byte](text Text, f Field, offset uint64) int64 {
	value := uint64(0)
	for i := offset; i < f.End(offset); i++ {
		value = value<<1 | uint64(Get(text, i))
	}
	if f.Signed {
		unused := 64 - f.Width
		return int64(value<<unused) >> unused
	}
	return int64(value)
}

// Put puts the low bits of a value into the field at an offset, which the text reaches.
func (f Field) Put(text []byte, offset uint64, value int64) {
	for i := range f.Width {
		Set(text, offset+uint64(i), value>>(f.Width-1-i)&1 == 1)
	}
}

// Overflow is what becomes of a value that is too large or too small for its field.
type Overflow uint8

// The ways.
const (
	Wraps     Overflow = iota // its low bits stay
	Saturates                 // it becomes the largest or smallest that there is
	Fails                     // nothing is done
)

// Sum is a value that is in the field, or is to be, and an increment, as the field takes them. ok is false where they are too much
// and that fails.
func (f Field) Sum(value, by int64, how Overflow) (sum int64, ok bool) {
	over, under := f.exceeds(value, by)
	switch {
	case !over && !under:
		return value + by, true
	case how == Wraps:
		unused := 64 - f.Width
		if f.Signed {
			return (value + by) << unused >> unused, true
		}
		return int64(uint64(value+by) << unused >> unused), true
	case how == Fails:
		return 0, false
	case over:
		return f.largest(), true
	case f.Signed:
		return -f.largest() - 1, true
	}
	return 0, true
}

// largest is the largest value.
func (f Field) largest() int64 {
	if f.Signed {
		return int64(math.MaxInt64) >> (64 - f.Width)
	}
	return int64(uint64(math.MaxUint64) >> (64 - f.Width))
}

// exceeds tells whether a sum is too large or too small. Differences may leave their type here, as they do in Redis: a SET of the
// smallest numbers counts as too large.
func (f Field) exceeds(value, by int64) (over, under bool) {
	most, least := f.largest(), int64(0)
	whole := f.Signed && f.Width == 64 // only the sum may be too large, not the value
	switch {
	case f.Signed:
		least = -most - 1
	case uint64(value) > uint64(most):
		return true, false
	default:
		return by > 0 && by > most-value, by < 0 && by < -value
	}
	switch {
	case value > most, !whole && by > most-value, value >= 0 && by > 0 && by > most-value:
		return true, false
	case value < least, !whole && by < least-value, value < 0 && by < 0 && by < least-value:
		return false, true
	}
	return false, false
}
