package clib

import "math"

// The C library's sines, which are nearly always the closest number there is: these compute with twice the digits and round once, for
// angles of up to half a turn.

// sineTerms of the series below leave out less than 2^-77 of the sum, and so much is lost where only exactTerms have twice the digits.
const (
	sineTerms  = 11
	exactTerms = 5
)

// quarter is a right angle: a number, and what is missing to it.
const quarter = math.Pi / 2

func quarterRest() double { return double{0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110} }

// Sin is the sine of an angle.
func Sin(x float64) float64 {
	if !(math.Abs(x) <= math.Pi) || x == 0 {
		return math.Sin(x)
	}
	s := sineOf(x)
	return s.high + s.low
}

// Cos is the cosine of an angle.
func Cos(x float64) float64 {
	if !(math.Abs(x) <= math.Pi) {
		return math.Cos(x)
	}
	c := cosineOf(x)
	return c.high + c.low
}

// Asin is the angle of which x is the sine.
func Asin(x float64) float64 {
	about := math.Asin(x)
	if !(math.Abs(x) < 1) || x == 0 {
		return about
	}
	// By Newton's method, whose one step doubles the digits.
	off := double{x, 0}.plus(negated(sineOf(about)))
	return about + off.high/math.Cos(about)
}

func negated(x double) double { return double{-x.high, -x.low} }

// turns splits an angle into right angles and a rest of at most half of one.
func turns(x float64) (quarters int, rest double) {
	k := math.Round(x / quarter)
	more := quarterRest()
	rest = sum(x, -k*quarter).plus(double{-k * more.high, -k * more.low})
	return int(k) & 3, rest
}

func sineOf(x float64) double {
	quarters, rest := turns(x)
	return wave(quarters, rest)
}

func cosineOf(x float64) double {
	quarters, rest := turns(x)
	return wave((quarters+1)&3, rest)
}

// wave is the sine of so many right angles, up to three, and a rest.
func wave(quarters int, rest double) double {
	var s double
	if quarters&1 == 0 {
		s = alternating(rest, 1).times(rest)
	} else {
		s = alternating(rest, 0)
	}
	if quarters&2 != 0 {
		return negated(s)
	}
	return s
}

// alternating is 1 - x^2/((d+1)(d+2)) (1 - x^2/((d+3)(d+4)) (1 - …)).
func alternating(x double, d int) double {
	square, tail := negated(x.times(x)), 1.0
	for n := sineTerms; n > exactTerms; n-- {
		tail = float64(tail*square.high*inverses[d][n].high) + 1
	}
	series := double{tail, 0}
	for n := exactTerms; n > 0; n-- {
		series = series.times(square).times(inverses[d][n]).plus(double{1, 0})
	}
	return series
}

// inverses are 1/((d+2n-1)(d+2n)), by d and n. They are never changed.
var inverses = func() (all [2][sineTerms + 1]double) {
	for d := range all {
		for n := 1; n <= sineTerms; n++ {
			all[d][n] = double{1, 0}.over(double{float64((d + 2*n - 1) * (d + 2*n)), 0})
		}
	}
	return all
}()
