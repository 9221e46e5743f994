package script

import (
	"math"

	"redlock-proxy/commands/script/lua"
)

// generator is lrand48 of C, which math.random draws from in Redis, on every machine the same.
type generator uint64

// newGenerator begins with a seed.
func newGenerator(seed int32) generator { return generator(uint32(seed))<<16 | 0x330e }

// next is a number from 0 to 2^31-1.
func (g *generator) next() int32 {
	*g = (*g*0x5deece66d + 0xb) & (1<<48 - 1)
	return int32(*g >> 17)
}

var randomLibrary = []lua.Entry{
	{Name: "random", Value: mathRandom},
	{Name: "randomseed", Value: func(c *lua.Call) []lua.Value {
		runOf(c).random = newGenerator(int32(c.WantInt32(1)))
		return nil
	}},
}

func mathRandom(c *lua.Call) []lua.Value {
	fraction := float64(runOf(c).random.next()%math.MaxInt32) / math.MaxInt32
	low := 1
	switch c.NArgs() {
	case 0:
		return c.Return(fraction)
	case 1:
	case 2:
		low = c.WantInt32(1)
	default:
		return c.Fail("wrong number of arguments")
	}
	high := c.WantInt32(c.NArgs())
	if low > high {
		c.BadArg(c.NArgs(), "interval is empty")
	}
	return c.Return(math.Floor(fraction*float64(int32(high-low+1))) + float64(low))
}
