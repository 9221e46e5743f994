package structlib

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"redlock-proxy/internal/lua"
	"redlock-proxy/internal/lua/clib"
)

// maxStack is the maximum number of values on C Lua's stack.
const maxStack = 8000

// unpacker reads values from a string.
type unpacker struct {
	format
	data   string
	offset uint64
	values []lua.Value
}

func unpack(c *lua.Call) []lua.Value {
	u := unpacker{format: formatOf(c), data: c.WantString(2), offset: uint64(c.OptInt(3, 1))}
	if u.offset == 0 {
		c.RaiseBadArg(3, "offset must be 1 or greater")
	}
	u.offset--
	for {
		o, ok := u.nextOption()
		if !ok {
			return c.Return(append(u.values, float64(int64(u.offset+1)))...)
		}
		u.offset += uint64(u.padding(o, u.offset))
		u.checkLength(uint64(o.size))
		if c.NArgs()+len(u.values)+2 > maxStack {
			c.Fail("stack overflow (too many results)")
		}
		u.unpackOption(o)
	}
}

// checkLength raises an error if fewer than size bytes are left.
func (u *unpacker) checkLength(size uint64) {
	if total := uint64(len(u.data)); size > total || u.offset > total-size {
		u.call.RaiseBadArg(2, "data string too short")
	}
}

func (u *unpacker) unpackOption(o option) {
	switch o.letter {
	case 'b', 'h', 'l', 'i':
		u.addValue(signedValue(u.readNumber(o.size), o.size))
	case 'B', 'H', 'L', 'T', 'I':
		u.addValue(float64(low64(u.readNumber(o.size))))
	case 'x':
		u.offset++
	case 'f':
		u.addValue(float64(math.Float32frombits(binary.LittleEndian.Uint32(u.readNumber(4)))))
	case 'd':
		u.addValue(math.Float64frombits(binary.LittleEndian.Uint64(u.readNumber(8))))
	case 'c':
		u.readText(o.size)
	case 's':
		u.readZeroTerminated()
	default:
		u.applyControl(o.letter)
	}
}

func (u *unpacker) addValue(v lua.Value) {
	u.call.State().Charge(resultSize)
	u.values = append(u.values, v)
}

// resultSize is the charge for each value in addition to its bytes.
const resultSize = 16

// readNumber consumes a number, and returns its bytes in little-endian order.
func (u *unpacker) readNumber(size int) []byte {
	bytes := []byte(u.data[u.offset:][:size])
	u.offset += uint64(size)
	if u.bigEndian {
		slices.Reverse(bytes)
	}
	return bytes
}

// low64 returns the lowest 64 bits of a number in little-endian order.
func low64(number []byte) uint64 {
	var bytes [8]byte
	copy(bytes[:], number)
	return binary.LittleEndian.Uint64(bytes[:])
}

// signedValue returns the value of a number whose highest bit is its sign. For a number of more
// than eight bytes, it returns the same result as x86, which shifts by the width modulo 64.
func signedValue(number []byte, size int) float64 {
	n := low64(number)
	mask := ^uint64(0) << (uint(size*8-1) % 64)
	if n&mask != 0 {
		n |= mask
	}
	return float64(int64(n))
}

// readText consumes a text of size bytes. If size is 0, the value before it is the size, and the
// text replaces that value.
func (u *unpacker) readText(size int) {
	n := uint64(size)
	if size == 0 {
		n = u.popSize()
		u.checkLength(n)
	}
	u.addValue(u.call.State().Text(u.data[u.offset:][:n]))
	u.offset += n
}

func (u *unpacker) popSize() uint64 {
	if len(u.values) > 0 {
		last := len(u.values) - 1
		if n, ok := u.call.State().Number(u.values[last]); ok {
			u.values = u.values[:last]
			return clib.Unsigned(n)
		}
	}
	u.call.Fail("format 'c0' needs a previous size")
	return 0
}

func (u *unpacker) readZeroTerminated() {
	rest := u.data[u.offset:]
	u.call.State().Work(len(rest))
	end := strings.IndexByte(rest, 0)
	if end < 0 {
		u.call.Fail("unfinished string in data")
	}
	u.addValue(u.call.State().Text(rest[:end]))
	u.offset += uint64(end) + 1
}
