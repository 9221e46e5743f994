package clib

import (
	"math"
	"testing"
)

// Sines are the closest numbers there are; that of pi is what pi lacks.
func TestSines(t *testing.T) {
	for _, test := range []struct {
		name    string
		f       func(float64) float64
		x, want float64
	}{
		{"sin", Sin, 0.5, 0.479425538604203},
		{"sin", Sin, 1, 0.8414709848078965},
		{"sin", Sin, -1, -0.8414709848078965},
		{"sin", Sin, 3, 0.1411200080598672},
		{"sin", Sin, 1e-9, 1e-9},
		{"sin", Sin, 0, 0},
		{"sin", Sin, math.Pi, 1.2246467991473532e-16},
		{"cos", Cos, 0, 1},
		{"cos", Cos, 1, 0.5403023058681398},
		{"cos", Cos, 2, -0.4161468365471424},
		{"cos", Cos, math.Pi / 2, 6.123233995736766e-17},
		{"cos", Cos, math.Pi, -1},
		{"asin", Asin, 0.5, 0.5235987755982989},
		{"asin", Asin, 1, math.Pi / 2},
		{"asin", Asin, -1, -math.Pi / 2},
		{"asin", Asin, 1e-9, 1e-9},
	} {
		if got := test.f(test.x); got != test.want {
			t.Errorf("%s %v: %v, want %v", test.name, test.x, got, test.want)
		}
	}
	if !math.IsNaN(Asin(1.5)) || !math.IsNaN(Sin(math.Inf(1))) || !math.IsNaN(Cos(math.NaN())) {
		t.Error("a sine of what has none")
	}
}

// Nowhere are they farther from those of Go than these are from what is right.
func TestSinesEverywhere(t *testing.T) {
	for x := -math.Pi; x <= math.Pi; x += 0.0013 {
		for name, pair := range map[string][2]float64{"sin": {Sin(x), math.Sin(x)}, "cos": {Cos(x), math.Cos(x)}, "asin": {Asin(x / 4), math.Asin(x / 4)}} {
			if math.Abs(pair[0]-pair[1]) > 4e-16 {
				t.Errorf("%s %v: %v, in Go %v", name, x, pair[0], pair[1])
			}
		}
	}
}

func BenchmarkSin(b *testing.B) {
	for b.Loop() {
		Sin(0.7)
	}
}

func BenchmarkAsin(b *testing.B) {
	for b.Loop() {
		Asin(0.7)
	}
}
