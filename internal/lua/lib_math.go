package lua

import (
	"math"

	"redlock-proxy/internal/lua/clib"
)

var mathLibrary = []Entry{
	{"pi", math.Pi},
	{"huge", math.Inf(1)},
	{"abs", unaryFunc(math.Abs)},
	{"acos", unaryFunc(math.Acos)},
	{"asin", unaryFunc(math.Asin)},
	{"atan", unaryFunc(withNaNSign(math.Atan))},
	{"atan2", binaryFunc(math.Atan2)},
	{"ceil", unaryFunc(withNaNSign(math.Ceil))},
	{"cos", unaryFunc(withNaNSign(math.Cos))},
	{"cosh", unaryFunc(withNaNSign(math.Cosh))},
	{"deg", unaryFunc(func(x float64) float64 { return x / (math.Pi / 180) })},
	{"exp", unaryFunc(withNaNSign(math.Exp))},
	{"floor", unaryFunc(withNaNSign(math.Floor))},
	{"fmod", binaryFunc(math.Mod)},
	{"frexp", mathFrexp},
	{"ldexp", binaryFunc(func(x, y float64) float64 { return math.Ldexp(x, int(int32(clib.Truncate(y)))) })},
	{"log", unaryFunc(withNaNSign(math.Log))},
	{"log10", unaryFunc(clib.Log10)},
	{"max", func(c *Call) []Value { return c.extreme(func(a, b float64) bool { return a > b }) }},
	{"min", func(c *Call) []Value { return c.extreme(func(a, b float64) bool { return a < b }) }},
	{"mod", alias("fmod")},
	{"modf", mathModf},
	{"pow", binaryFunc(clib.Power)},
	{"rad", unaryFunc(func(x float64) float64 { return x * (math.Pi / 180) })},
	{"sin", unaryFunc(withNaNSign(math.Sin))},
	{"sinh", unaryFunc(withNaNSign(math.Sinh))},
	{"sqrt", unaryFunc(math.Sqrt)},
	{"tan", unaryFunc(withNaNSign(math.Tan))},
	{"tanh", unaryFunc(withNaNSign(math.Tanh))},
}

func unaryFunc(f func(float64) float64) func(*Call) []Value {
	return func(c *Call) []Value { return c.Return(f(c.WantNumber(1))) }
}

// withNaNSign returns f with C's sign of a NaN result.
func withNaNSign(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 { return clib.SignedNaN(f(x), x) }
}

// binaryFunc returns a Lua function of two numbers. It checks the second argument first, as
// compiled C does.
func binaryFunc(f func(x, y float64) float64) func(*Call) []Value {
	return func(c *Call) []Value {
		y := c.WantNumber(2)
		x := c.WantNumber(1)
		return c.Return(clib.SignedNaN(f(x, y), x, y))
	}
}

func mathFrexp(c *Call) []Value {
	fraction, exponent := math.Frexp(c.WantNumber(1))
	return c.Return(fraction, float64(exponent))
}

func mathModf(c *Call) []Value {
	n := c.WantNumber(1)
	if math.IsInf(n, 0) {
		return c.Return(n, math.Copysign(0, n))
	}
	whole := math.Trunc(n)
	return c.Return(whole, math.Copysign(n-whole, n))
}

// extreme returns the largest or the smallest argument, as isMoreExtreme decides.
func (c *Call) extreme(isMoreExtreme func(a, b float64) bool) []Value {
	best := c.WantNumber(1)
	for i := 2; i <= c.NArgs(); i++ {
		if n := c.WantNumber(i); isMoreExtreme(n, best) {
			best = n
		}
	}
	return c.Return(best)
}
