package clib

import "math"

// The C library's logarithms and powers, which are nearly always the closest number there is: these compute with twice the digits and
// round once. Those of Go's package math are often off in the last places, and by far for logarithms of numbers below 2^-1022.

// double is the sum of two numbers of which the second is too small to show in the first: 106 bits.
type double struct{ high, low float64 }

// sum is a+b, nothing lost.
func sum(a, b float64) double {
	s := a + b
	part := s - a
	return double{s, (a - (s - part)) + (b - part)}
}

// product is a*b, nothing lost.
func product(a, b float64) double {
	p := float64(a * b)
	return double{p, math.FMA(a, b, -p)}
}

func (x double) plus(y double) double {
	s, t := sum(x.high, y.high), sum(x.low, y.low)
	s = sum(s.high, s.low+t.high)
	return sum(s.high, s.low+t.low)
}

func (x double) times(y double) double {
	p := product(x.high, y.high)
	return sum(p.high, p.low+float64(x.high*y.low)+float64(x.low*y.high))
}

func (x double) over(y double) double {
	q := x.high / y.high
	rest := x.plus(double{-q, 0}.times(y))
	return sum(q, rest.high/y.high)
}

// logTerms and expTerms of the series below leave out less than 2^-105 of the sum.
const (
	logTerms = 23
	expTerms = 26
)

// ln2 is the natural logarithm of 2.
func ln2() double { return double{math.Ln2, 0x1.abc9e3b39803fp-56} }

// Log is the natural logarithm.
func Log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) || x == 1 {
		return math.Log(x)
	}
	d := logOf(x)
	return d.high + d.low
}

// logOf is the natural logarithm of a finite number above 0.
func logOf(x float64) double {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// With f = (m-1)/(m+1), log m = 2(f + f^3/3 + f^5/5 + …).
	f := double{m - 1, 0}.over(sum(m, 1))
	square, series := f.times(f), double{}
	for n := logTerms; n >= 0; n-- {
		series = series.times(square).plus(double{1, 0}.over(double{float64(2*n + 1), 0}))
	}
	series = series.times(f).times(double{2, 0})
	return ln2().times(double{float64(e), 0}).plus(series)
}

// Exp is e^x.
func Exp(x float64) float64 {
	if math.IsNaN(x) {
		return x
	}
	return expOf(double{x, 0})
}

// expOf is e^x, rounded.
func expOf(x double) float64 {
	switch {
	case x.high > 710:
		return math.Inf(1)
	case x.high < -746:
		return 0
	}
	// x = k*ln 2 + r, and e^r = 1 + r(1 + r/2(1 + r/3(1 + …)))
	k := math.Round(x.high / math.Ln2)
	r := x.plus(ln2().times(double{-k, 0}))
	series := double{1, 0}
	for n := expTerms; n > 0; n-- {
		series = series.times(r).over(double{float64(n), 0}).plus(double{1, 0})
	}
	if series.high < 1 {
		series, k = series.times(double{2, 0}), k-1
	}
	result := series.high + series.low
	if k < -1022 { // fewer bits are left: rounded to these, and only once
		unit := math.Ldexp(1, -1022-int(k))
		s := sum(unit, series.high)
		result = s.high + (s.low + series.low) - unit
	}
	return math.Ldexp(result, int(k))
}

// pow is x^y.
func pow(x, y float64) float64 {
	magnitude := math.Abs(x)
	if !(magnitude > 0) || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(y) || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y)
	}
	result := expOf(logOf(magnitude).times(double{y, 0}))
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

// Log10 is the decimal logarithm by the formula of the C library: log of what is left beside a power of 2. The last place depends on it.
func Log10(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x < 0:
		return math.NaN() // without the sign that log gives it
	case x == 0 || math.IsInf(x, 0):
		return math.Log(x)
	}
	const (
		log10of2     = 0x1.34413509f6p-2 // that many bits, so that a product with the exponent is exact
		log10of2Rest = 0x1.9fef311f12b36p-42
	)
	m, e := math.Frexp(x)
	if e > 0 { // m in [1, 2) for numbers from 1 on, else in [0.5, 1)
		m, e = m*2, e-1
	}
	rest := float64(float64(e)*log10of2Rest) + float64(math.Log10E*Log(m))
	return rest + float64(float64(e)*log10of2)
}
