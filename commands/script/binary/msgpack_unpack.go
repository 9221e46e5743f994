package binary

import (
	"encoding/binary"
	"math"

	"redlock-proxy/commands/script/lua"
)

const (
	errMissing = "Missing bytes in input."
	errFormat  = "Bad data format in input."
)

// messageUnpacker reads values of MessagePack.
type messageUnpacker struct {
	stack
	rest   string
	height int // of the stack
}

func unpackMessage(c *lua.Call) []lua.Value { return unpackMessages(c, c.NArgs(), 0, 0) }

func unpackOne(c *lua.Call) []lua.Value {
	offset := c.OptInt(2, 0)
	return unpackMessages(c, min(c.NArgs(), 1), 1, offset)
}

func unpackLimit(c *lua.Call) []lua.Value {
	limit := c.WantInt(2)
	return unpackMessages(c, min(c.NArgs(), 1), limit, c.OptInt(3, 0))
}

// unpackMessages reads up to so many values from an offset on, and tells first where the next one is, or -1; or it reads all, where both are 0.
// So many arguments are on the stack.
func unpackMessages(c *lua.Call, args, limit, offset int) []lua.Value {
	data := c.WantString(1)
	switch {
	case offset < 0 || limit < 0:
		return c.Fail("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(data))) // not the limit, in Redis as well
	case offset > len(data):
		return c.Fail("Start offset %d greater than input length %d.", int32(offset), int32(len(data)))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	u := messageUnpacker{stack: stack{c}, rest: data[offset:], height: args}
	var values []lua.Value
	if !all {
		values = append(values, nil)
	}
	for n := 0; u.rest != "" && n < limit; n++ {
		values = append(values, u.value())
		u.height++
	}
	if all {
		return c.Return(values...)
	}
	u.mustFit(u.height+1, "in function mp_unpack_full")
	next := -1
	if u.rest != "" {
		next = len(data) - len(u.rest)
	}
	values[0] = float64(next)
	return c.Return(values...)
}

// take takes so many bytes.
func (u *messageUnpacker) take(n int) string {
	if n > len(u.rest) {
		u.call.Fail(errMissing)
	}
	taken := u.rest[:n]
	u.rest = u.rest[n:]
	return taken
}

// bits takes a number of so many bytes, the highest first.
func (u *messageUnpacker) bits(size int) uint64 {
	var whole [8]byte
	copy(whole[8-size:], u.take(size))
	return binary.BigEndian.Uint64(whole[:])
}

func (u *messageUnpacker) value() lua.Value {
	mark := u.mark()
	switch {
	case mark < smallMap:
		return float64(mark)
	case mark < smallArray:
		return u.table(int(mark & 0xf))
	case mark < smallText:
		return u.array(int(mark & 0xf))
	case mark < null:
		return u.text(int(mark & 0x1f))
	case mark > map32:
		return float64(int8(mark))
	}
	switch mark {
	case null:
		return nil
	case no, yes:
		return mark == yes
	case single:
		return float64(math.Float32frombits(uint32(u.bits(4))))
	case double:
		return math.Float64frombits(u.bits(8))
	case uint8Mark, uint16Mark, uint32Mark, uint64Mark:
		return float64(int64(u.bits(1 << (mark - uint8Mark)))) // one of 64 bits has a sign, in Redis as well
	case int8Mark:
		return float64(int8(u.bits(1)))
	case int16Mark:
		return float64(int16(u.bits(2)))
	case int32Mark:
		return float64(int32(u.bits(4)))
	case int64Mark:
		return float64(int64(u.bits(8)))
	}
	return u.long(mark)
}

// mark takes the byte that tells what follows.
func (u *messageUnpacker) mark() byte {
	first := u.take(1)
	u.mustFit(u.height+1, "too many return values at once; use unpack_one or unpack_limit instead.")
	u.call.State().Charge(resultSize)
	return first[0]
}

// long is what has its size in bytes of its own.
func (u *messageUnpacker) long(mark byte) lua.Value {
	switch mark {
	case text8:
		return u.text(int(u.bits(1)))
	case text16:
		return u.text(int(u.bits(2)))
	case text32:
		return u.text(int(u.bits(4)))
	case array16:
		return u.array(int(u.bits(2)))
	case array32:
		return u.array(int(u.bits(4)))
	case map16:
		return u.table(int(u.bits(2)))
	case map32:
		return u.table(int(u.bits(4)))
	}
	u.call.Fail(errFormat)
	return nil
}

func (u *messageUnpacker) text(size int) lua.Value { return u.call.State().Text(u.take(size)) }

// array reads so many elements: each is on the stack with its index, above the table.
func (u *messageUnpacker) array(n int) lua.Value {
	state := u.call.State()
	t := state.NewTable()
	u.height++
	u.mustFit(u.height+1, "in function mp_decode_to_lua_array")
	u.height++
	for i := 1; i <= n; i++ {
		state.Set(t, float64(i), u.value())
	}
	u.height -= 2
	return t
}

// table reads so many keys, each with its value after it.
func (u *messageUnpacker) table(n int) lua.Value {
	state := u.call.State()
	t := state.NewTable()
	u.height++
	for range n {
		key := u.value()
		u.height++
		value := u.value()
		u.height--
		if key == nil {
			u.call.Raise("table index is nil")
		}
		if number, ok := key.(float64); ok && math.IsNaN(number) {
			u.call.Raise("table index is NaN")
		}
		state.Set(t, key, value)
	}
	u.height--
	return t
}
