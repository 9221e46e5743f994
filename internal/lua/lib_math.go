package lua

import (
	"math"

	"redlock-proxy/internal/lua/clib"
)

var mathLibrary = []Entry{
	{"pi", math.Pi},
	{"huge", math.Inf(1)},
	{"abs", unary(math.Abs)},
	{"acos", unary(math.Acos)},
	{"asin", unary(math.Asin)},
	{"atan", unary(withNaNSign(math.Atan))},
	{"atan2", binary(math.Atan2)},
	{"ceil", unary(withNaNSign(math.Ceil))},
	{"cos", unary(withNaNSign(math.Cos))},
	{"cosh", unary(withNaNSign(math.Cosh))},
	{"deg", unary(func(x float64) float64 { return x / (math.Pi / 180) })},
	{"exp", unary(withNaNSign(math.Exp))},
	{"floor", unary(withNaNSign(math.Floor))},
	{"fmod", binary(math.Mod)},
	{"frexp", mathFrexp},
	{"ldexp", binary(func(x, y float64) float64 { return math.Ldexp(x, int(int32(clib.Truncate(y)))) })},
	{"log", unary(withNaNSign(math.Log))},
	{"log10", unary(clib.Log10)},
	{"max", func(c *Call) []Value { return c.extreme(func(a, b float64) bool { return a > b }) }},
	{"min", func(c *Call) []Value { return c.extreme(func(a, b float64) bool { return a < b }) }},
	{"mod", alias("fmod")},
	{"modf", mathModf},
	{"pow", binary(clib.Power)},
	{"rad", unary(func(x float64) float64 { return x * (math.Pi / 180) })},
	{"sin", unary(withNaNSign(math.Sin))},
	{"sinh", unary(withNaNSign(math.Sinh))},
	{"sqrt", unary(math.Sqrt)},
	{"tan", unary(withNaNSign(math.Tan))},
	{"tanh", unary(withNaNSign(math.Tanh))},
}

func unary(f func(float64) float64) func(*Call) []Value {
	return func(c *Call) []Value { return c.Return(f(c.WantNumber(1))) }
}

// withNaNSign returns f with C's sign of a NaN result.
func withNaNSign(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 { return clib.SignedNaN(f(x), x) }
}

// binary returns a Lua function of two numbers. It checks the second argument first, as compiled C
// does.
func binary(f func(x, y float64) float64) func(*Call) []Value {
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

// extreme returns the argument that beats all other arguments.
func (c *Call) extreme(beats func(a, b float64) bool) []Value {
	best := c.WantNumber(1)
	for i := 2; i <= c.NArgs(); i++ {
		if n := c.WantNumber(i); beats(n, best) {
			best = n
		}
	}
	return c.Return(best)
}
