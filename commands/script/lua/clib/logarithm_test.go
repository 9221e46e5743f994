package clib

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// anyNumber is a finite number above 0 of any size.
func anyNumber(random *rand.Rand) float64 {
	switch random.IntN(4) {
	case 0:
		return 0.5 + 1.5*random.Float64()
	case 1:
		return float64(1 + random.IntN(1_000_000))
	case 2:
		return math.Ldexp(1+random.Float64(), -1023-random.IntN(50))
	}
	return math.Float64frombits(1 + random.Uint64N(math.Float64bits(math.MaxFloat64)))
}

// exactly is log x with 200 bits: x = m*2^e, and log m by its series.
func exactly(x float64) *big.Float {
	number := func(n float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(n) }
	series := func(m float64) *big.Float {
		f := number(m)
		f.Quo(number(0).Sub(f, number(1)), number(0).Add(number(m), number(1)))
		square, power, total := number(0).Mul(f, f), f, number(0)
		for n := range 140 {
			total.Add(total, number(0).Quo(power, number(float64(2*n+1))))
			power = number(0).Mul(power, square)
		}
		return total.Mul(total, number(2))
	}
	m, e := math.Frexp(x)
	ln2 := series(2)
	return ln2.Mul(ln2, number(float64(e))).Add(ln2, series(m))
}

// log is the number that is closest to the true one.
func TestLogIsTheClosest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		x := anyNumber(random)
		if want, _ := exactly(x).Float64(); Log(x) != want {
			t.Errorf("log(%g) = %.17g, want %.17g", x, Log(x), want)
		}
	}
}

// exp and powers turn log around, and powers with whole exponents are products.
func TestExpAndPowers(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		x := anyNumber(random)
		if back := Exp(Log(x)); math.Abs(back-x) > math.Max(1e-13*x, 5e-324) {
			t.Errorf("exp(log(%g)) = %g", x, back)
		}
		if got := pow(x, 1); got != x {
			t.Errorf("%g^1 = %g", x, got)
		}
		if got := pow(x, 0.5); got != math.Sqrt(x) {
			t.Errorf("%g^0.5 = %g, want %g", x, got, math.Sqrt(x))
		}
		base, exponent := 1+random.IntN(999), random.IntN(30)
		product := new(big.Float).SetPrec(400).SetInt64(1)
		for range exponent {
			product.Mul(product, big.NewFloat(float64(base)))
		}
		if product.MinPrec() == 54 {
			continue // between two numbers, and as close to one as to the other
		}
		if want, _ := product.Float64(); pow(float64(base), float64(exponent)) != want || pow(float64(-base), float64(2*exponent)) < 0 {
			t.Errorf("%d^%d = %.17g, want %.17g", base, exponent, pow(float64(base), float64(exponent)), want)
		}
	}
}
