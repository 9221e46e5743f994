package binary

import (
	"encoding/binary"
	"math"

	"redlock-proxy/commands/script/lua"
	"redlock-proxy/commands/script/lua/clib"
)

// MessagePack is the library cmsgpack.
var MessagePack = []lua.Entry{
	{Name: "pack", Value: packMessage},
	{Name: "unpack", Value: unpackMessage},
	{Name: "unpack_one", Value: unpackOne},
	{Name: "unpack_limit", Value: unpackLimit},
	{Name: "_NAME", Value: "cmsgpack"},
	{Name: "_VERSION", Value: "lua-cmsgpack 0.4.0"},
	{Name: "_COPYRIGHT", Value: "Copyright (C) 2012, Salvatore Sanfilippo"},
	{Name: "_DESCRIPTION", Value: "MessagePack C implementation for Lua"},
}

// deepest is how deep tables may be nested; one that is deeper is packed as nil.
const deepest = 16

// What stands before values of MessagePack. Small ones are in the same byte.
const (
	smallMap, smallArray, smallText = 0x80, 0x90, 0xa0
	null, no, yes                   = 0xc0, 0xc2, 0xc3
	single, double                  = 0xca, 0xcb
	uint8Mark, uint16Mark           = 0xcc, 0xcd
	uint32Mark, uint64Mark          = 0xce, 0xcf
	int8Mark, int16Mark             = 0xd0, 0xd1
	int32Mark, int64Mark            = 0xd2, 0xd3
	text8, text16, text32           = 0xd9, 0xda, 0xdb
	array16, array32                = 0xdc, 0xdd
	map16, map32                    = 0xde, 0xdf
	lowestSmall                     = -32
)

// stack counts the values that C Lua would have on its stack, which is bounded.
type stack struct{ call *lua.Call }

// mustFit fails where there is no place for so many values, also those that were there before.
func (s stack) mustFit(values int, what string) {
	if values > maxStack {
		s.call.Fail("stack overflow (%s)", what)
	}
}

// messagePacker makes a string of values.
type messagePacker struct {
	stack
	packed []byte
}

func packMessage(c *lua.Call) []lua.Value {
	n := c.NArgs()
	switch {
	case n == 0:
		c.BadArg(0, "MessagePack pack needs input.")
	case 2*n > maxStack:
		c.BadArg(0, "Too many arguments for MessagePack pack.")
	}
	p := messagePacker{stack: stack{c}}
	for i := 1; i <= n; i++ {
		p.value(c.Arg(i), 0, n+i)
	}
	return c.ReturnText(string(p.packed))
}

func (p *messagePacker) append(bytes ...byte) {
	p.call.State().Charge(len(bytes))
	p.packed = append(p.packed, bytes...)
}

// value packs a value that is nested so deep, with so many on the stack.
func (p *messagePacker) value(v lua.Value, depth, height int) {
	switch v := v.(type) {
	case string:
		p.text(v)
	case bool:
		if v {
			p.append(yes)
		} else {
			p.append(no)
		}
	case float64:
		p.number(v)
	case *lua.Table:
		if depth < deepest {
			p.table(v, depth, height)
			return
		}
		p.append(null)
	default:
		p.append(null)
	}
}

func (p *messagePacker) text(s string) {
	switch n := len(s); {
	case n < 32:
		p.append(smallText | byte(n))
	case n <= math.MaxUint8:
		p.append(text8, byte(n))
	default:
		p.size(n, text16, text32)
	}
	p.append([]byte(s)...)
}

// size is a number of parts, with the mark for two or for four bytes.
func (p *messagePacker) size(n int, mark16, mark32 byte) {
	if n <= math.MaxUint16 {
		p.append(binary.BigEndian.AppendUint16([]byte{mark16}, uint16(n))...)
		return
	}
	p.append(binary.BigEndian.AppendUint32([]byte{mark32}, uint32(n))...)
}

func (p *messagePacker) number(n float64) {
	if whole := clib.Truncate(n); float64(whole) == n {
		p.integer(whole)
		return
	}
	if short := float32(n); float64(short) == n {
		p.append(binary.BigEndian.AppendUint32([]byte{single}, math.Float32bits(short))...)
		return
	}
	p.append(binary.BigEndian.AppendUint64([]byte{double}, math.Float64bits(n))...)
}

func (p *messagePacker) integer(n int64) {
	switch {
	case n >= lowestSmall && n <= math.MaxInt8:
		p.append(byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.append(uint8Mark, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.append(binary.BigEndian.AppendUint16([]byte{uint16Mark}, uint16(n))...)
	case n >= 0 && n <= math.MaxUint32:
		p.append(binary.BigEndian.AppendUint32([]byte{uint32Mark}, uint32(n))...)
	case n >= 0:
		p.append(binary.BigEndian.AppendUint64([]byte{uint64Mark}, uint64(n))...)
	case n >= math.MinInt8:
		p.append(int8Mark, byte(n))
	case n >= math.MinInt16:
		p.append(binary.BigEndian.AppendUint16([]byte{int16Mark}, uint16(n))...)
	case n >= math.MinInt32:
		p.append(binary.BigEndian.AppendUint32([]byte{int32Mark}, uint32(n))...)
	default:
		p.append(binary.BigEndian.AppendUint64([]byte{int64Mark}, uint64(n))...)
	}
}

func (p *messagePacker) table(t *lua.Table, depth, height int) {
	p.mustFit(height+2, "in function table_is_an_array")
	n, isArray := length(t)
	mark := byte(smallMap)
	mark16, mark32 := byte(map16), byte(map32)
	if isArray {
		p.mustFit(height+1, "in function mp_encode_lua_table_as_array")
		mark, mark16, mark32 = smallArray, array16, array32
	} else {
		p.mustFit(height+3, "in function mp_encode_lua_table_as_map")
	}
	if n < 16 {
		p.append(mark | byte(n))
	} else {
		p.size(n, mark16, mark32)
	}
	if isArray {
		for i := 1; i <= n; i++ {
			p.value(t.Get(float64(i)), depth+1, height+1)
		}
		return
	}
	for key, value, _ := t.Next(nil); key != nil; key, value, _ = t.Next(key) {
		p.value(key, depth+1, height+3)
		p.value(value, depth+1, height+2)
	}
}

// length counts the entries of a table, and tells whether their keys are 1 and so on without a gap.
func length(t *lua.Table) (n int, isArray bool) {
	last, indices := 0.0, true
	for key, _, _ := t.Next(nil); key != nil; key, _, _ = t.Next(key) {
		n++
		i, ok := key.(float64)
		indices = indices && ok && i > 0 && i <= math.MaxInt32 && i == math.Trunc(i)
		last = max(last, i)
	}
	return n, indices && last == float64(n)
}
