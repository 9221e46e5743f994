package script

import (
	"math"
	"math/bits"

	"redlock-proxy/commands/script/lua"
)

var bitLibrary = []lua.Entry{
	{Name: "tobit", Value: func(c *lua.Call) []lua.Value { return returnBits(c, wantBits(c, 1)) }},
	{Name: "bnot", Value: func(c *lua.Call) []lua.Value { return returnBits(c, ^wantBits(c, 1)) }},
	{Name: "band", Value: bitwise(func(a, b uint32) uint32 { return a & b })},
	{Name: "bor", Value: bitwise(func(a, b uint32) uint32 { return a | b })},
	{Name: "bxor", Value: bitwise(func(a, b uint32) uint32 { return a ^ b })},
	{Name: "lshift", Value: shift(func(a uint32, n int) uint32 { return a << n })},
	{Name: "rshift", Value: shift(func(a uint32, n int) uint32 { return a >> n })},
	{Name: "arshift", Value: shift(func(a uint32, n int) uint32 { return uint32(int32(a) >> n) })},
	{Name: "rol", Value: shift(bits.RotateLeft32)},
	{Name: "ror", Value: shift(func(a uint32, n int) uint32 { return bits.RotateLeft32(a, -n) })},
	{Name: "bswap", Value: func(c *lua.Call) []lua.Value { return returnBits(c, bits.ReverseBytes32(wantBits(c, 1))) }},
	{Name: "tohex", Value: toHex},
}

// wantBits is the low 32 bits of a number, rounded to the nearest as adding 2^52+2^51 does it.
func wantBits(c *lua.Call, i int) uint32 {
	const shifter = 1<<52 + 1<<51
	return uint32(math.Float64bits(c.WantNumber(i) + shifter))
}

func returnBits(c *lua.Call, b uint32) []lua.Value { return c.Return(float64(int32(b))) }

func bitwise(operation func(a, b uint32) uint32) func(*lua.Call) []lua.Value {
	return func(c *lua.Call) []lua.Value {
		b := wantBits(c, 1)
		for i := c.NArgs(); i > 1; i-- {
			b = operation(b, wantBits(c, i))
		}
		return returnBits(c, b)
	}
}

func shift(operation func(a uint32, n int) uint32) func(*lua.Call) []lua.Value {
	return func(c *lua.Call) []lua.Value {
		b, n := wantBits(c, 1), wantBits(c, 2)
		return returnBits(c, operation(b, int(n&31)))
	}
}

func toHex(c *lua.Call) []lua.Value {
	b, n, digits := wantBits(c, 1), int32(8), "0123456789abcdef"
	if c.NArgs() > 1 {
		n = int32(wantBits(c, 2))
	}
	if n < 0 {
		n, digits = -max(n, -8), "0123456789ABCDEF"
	}
	text := make([]byte, min(n, 8))
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	return c.ReturnText(string(text))
}
