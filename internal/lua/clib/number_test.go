package clib

import (
	"math"
	"strconv"
	"testing"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "10": 10, " 10 ": 10, "\t\n\v\f\r1": 1, "-5": -5, "+5": 5, ".5": .5, "5.": 5, "1e3": 1000,
		"1E-3": 0.001, "0x10": 16, "0XfF": 255, "-0x1": -1,
		"0x.8": 0.5, "0x1p4": 16, "0x1P-1": 0.5, "1e400": math.Inf(1), "inf": math.Inf(1), "-Infinity": math.Inf(-1),
		"10\x00abc": 10, "007": 7,
	} {
		if got, ok := ParseNumber(text); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", " ", "x", "1x", "0x", "0xg", "1 2", "1_000", "0b1", "0o7", "1e", "e1", ".", "-",
		"--1", "1.2.3", "infinit", "0x1p", "\x00", "٣"} {
		if got, ok := ParseNumber(text); ok {
			t.Errorf("%q: %v, want none", text, got)
		}
	}
	for text, negative := range map[string]bool{"nan": false, "NaN": false, "-nan": true, "nan(123)": false} {
		if got, ok := ParseNumber(text); !ok || !math.IsNaN(got) || math.Signbit(got) != negative {
			t.Errorf("%q: %v %v", text, got, ok)
		}
	}
}

func TestFormatNumber(t *testing.T) {
	for want, n := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "1": 1, "-1": -1, "0.1": 0.1, "100": 100, "1e+14": 1e14, "1e+15": 1e15,
		"99999999999999": 99999999999999, "1.2345678901234e+14": 123456789012345,
		"9.007199254741e+15": 1 << 53, "0.33333333333333": 1.0 / 3, "1e-07": 1e-7, "0.0001": 1e-4, "1e-05": 1e-5,
		"1e+100": 1e100, "inf": math.Inf(1), "-inf": math.Inf(-1),
	} {
		if got := FormatNumber(n); got != want {
			t.Errorf("%g: %s, want %s", n, got, want)
		}
	}
}

// FuzzNumber checks that if both Go and ParseNumber accept a text, they return the same number. A
// number that FormatG prints with 17 digits must be parsed to the same number.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"1", "-0.5e7", "0x1F", "0x1.8p3", "inf", "nan(x)", " 7 ", "1e999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := ParseNumber(text)
		if !ok {
			return
		}
		if want, err := strconv.ParseFloat(text, 64); err == nil && want != n && !math.IsNaN(n) {
			t.Errorf("%q: %v, want %v", text, n, want)
		}
		if parsed, ok := ParseNumber(FormatG(n, 17)); !ok || parsed != n && !math.IsNaN(n) {
			t.Errorf("%v: printed as %s, which reads as %v %v", n, FormatG(n, 17), parsed, ok)
		}
	})
}
