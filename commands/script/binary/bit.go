package binary

import (
	"fmt"
	"math"
	"math/bits"

	"redlock-proxy/commands/script/lua"
)

// Bit is the library bit.
var Bit = []lua.Entry{
	{Name: "tobit", Value: unary(func(b uint32) uint32 { return b })},
	{Name: "bnot", Value: unary(func(b uint32) uint32 { return ^b })},
	{Name: "band", Value: fold(func(a, b uint32) uint32 { return a & b })},
	{Name: "bor", Value: fold(func(a, b uint32) uint32 { return a | b })},
	{Name: "bxor", Value: fold(func(a, b uint32) uint32 { return a ^ b })},
	{Name: "lshift", Value: shift(func(b uint32, n int) uint32 { return b << n })},
	{Name: "rshift", Value: shift(func(b uint32, n int) uint32 { return b >> n })},
	{Name: "arshift", Value: shift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) })},
	{Name: "rol", Value: shift(bits.RotateLeft32)},
	{Name: "ror", Value: shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) })},
	{Name: "bswap", Value: unary(bits.ReverseBytes32)},
	{Name: "tohex", Value: toHex},
}

// argument is a number's lowest 32 bits, after it was rounded to an integer.
func argument(c *lua.Call, i int) uint32 {
	const rounds = 1<<52 + 1<<51 // a double of this size has no fraction
	return uint32(math.Float64bits(c.WantNumber(i) + rounds))
}

func result(c *lua.Call, b uint32) []lua.Value { return c.Return(float64(int32(b))) }

func unary(f func(uint32) uint32) func(*lua.Call) []lua.Value {
	return func(c *lua.Call) []lua.Value { return result(c, f(argument(c, 1))) }
}

// fold is for any number of arguments, of which the last is looked at after the first.
func fold(f func(a, b uint32) uint32) func(*lua.Call) []lua.Value {
	return func(c *lua.Call) []lua.Value {
		b := argument(c, 1)
		for i := c.NArgs(); i > 1; i-- {
			b = f(b, argument(c, i))
		}
		return result(c, b)
	}
}

func shift(f func(b uint32, n int) uint32) func(*lua.Call) []lua.Value {
	return func(c *lua.Call) []lua.Value {
		b := argument(c, 1)
		return result(c, f(b, int(argument(c, 2)&31)))
	}
}

// toHex is as many digits as are asked for, in capitals if the number of them is negative.
func toHex(c *lua.Call) []lua.Value {
	b, digits := argument(c, 1), int64(8)
	if c.NArgs() > 1 {
		digits = int64(int32(argument(c, 2)))
	}
	text := fmt.Sprintf("%08x", b)
	if digits < 0 {
		text, digits = fmt.Sprintf("%08X", b), -digits
	}
	return c.ReturnText(text[8-min(digits, 8):])
}
