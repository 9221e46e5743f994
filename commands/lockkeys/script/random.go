package script

import (
	"math"

	"redlock-proxy/internal/lua"
)

// randomLibrary uses the run's generator, which is PCG (math/rand/v2) and starts with the seed 0 in
// every run. So a repeated run gets the same numbers.
var randomLibrary = []lua.Entry{
	{Name: "random", Value: mathRandom},
	{Name: "randomseed", Value: func(c *lua.Call) []lua.Value {
		runOf(c).random.Seed(uint64(c.WantInt(1)), 0)
		return nil
	}},
}

func mathRandom(c *lua.Call) []lua.Value {
	const digits = 53 // bits of a number between 0 and 1
	fraction := float64(runOf(c).random.Uint64()>>(64-digits)) / (1 << digits)
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
		c.RaiseBadArg(c.NArgs(), "interval is empty")
	}
	return c.Return(math.Floor(fraction*float64(high-low+1)) + float64(low))
}
