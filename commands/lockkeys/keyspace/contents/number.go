package contents

import (
	"math"
	"math/big"
	"strings"

	"redlock-proxy/internal/lua/clib"
)

// FormatDouble formats a score as Redis does.
func FormatDouble(n float64) string {
	switch {
	case math.IsInf(n, 1):
		return "inf"
	case math.IsInf(n, -1):
		return "-inf"
	default:
		return clib.FormatG(n, 17)
	}
}

// ParseDouble parses a whole word as a number, as Redis does. The word inf is a number. A number
// that is too large or too small is an error.
func ParseDouble(word string) (n float64, ok bool) {
	if word == "" || isBlank(word[0]) {
		return 0, false
	}
	n, rest := clib.ParsePrefix(word)
	switch {
	case rest != "", math.IsNaN(n):
		return 0, false
	case math.IsInf(n, 0):
		return n, isInfinity(word)
	case n == 0:
		return n, isZero(word)
	}
	return n, true
}

func isBlank(b byte) bool { return strings.IndexByte(" \t\n\v\f\r", b) >= 0 }

// isInfinity reports whether a word with an infinite value spells infinity. Otherwise, its digits
// overflow.
func isInfinity(word string) bool { return strings.ContainsAny(word, "nN") }

// isZero reports whether all digits of a number are 0, not counting the exponent.
func isZero(word string) bool {
	word = strings.ToLower(strings.TrimLeft(word, "+-"))
	digits, exponent := "123456789", "e"
	if hex, ok := strings.CutPrefix(word, "0x"); ok {
		word, digits, exponent = hex, "123456789abcdef", "p"
	}
	mantissa, _, _ := strings.Cut(word, exponent)
	return !strings.ContainsAny(mantissa, digits)
}

// LongDouble is a number with 64 bits of precision, like C's long double on the machines that most
// Redis servers run on.
type LongDouble struct{ n *big.Float }

const (
	longDoubleBits     = 64
	longDoubleExponent = 16384
	// maxLongDoubleLen limits the bytes of a number: Redis parses only shorter words.
	maxLongDoubleLen = 5 * 1024
)

// NewLongDouble returns an integer as a LongDouble.
func NewLongDouble(n int64) LongDouble {
	return LongDouble{new(big.Float).SetPrec(longDoubleBits).SetInt64(n)}
}

// ParseLongDouble parses a whole word as a LongDouble.
func ParseLongDouble(word string) (n LongDouble, ok bool) {
	if word == "" || len(word) >= maxLongDoubleLen || isBlank(word[0]) {
		return LongDouble{}, false
	}
	approx, rest := clib.ParsePrefix(word)
	switch {
	case rest != "", math.IsNaN(approx):
		return LongDouble{}, false
	case isInfinity(word):
		return LongDouble{new(big.Float).SetInf(approx < 0)}, true
	case isZero(word):
		return LongDouble{new(big.Float).SetPrec(longDoubleBits).SetFloat64(approx)}, true
	}
	exact, ok := parseExact(word)
	if !ok || exact.Sign() == 0 || exact.MantExp(nil) > longDoubleExponent || exact.MantExp(nil) < -longDoubleExponent {
		return LongDouble{}, false
	}
	return LongDouble{exact}, true
}

// parseExact parses a number that is neither zero nor infinite. It rounds once.
func parseExact(word string) (*big.Float, bool) {
	n := new(big.Float).SetPrec(longDoubleBits)
	if strings.ContainsAny(word, "xX") {
		_, _, err := n.Parse(word, 0)
		return n, err == nil
	}
	if hasHugeExponent(word) {
		return nil, false
	}
	exact, ok := new(big.Rat).SetString(word)
	if !ok {
		return nil, false
	}
	return n.SetRat(exact), true
}

// hasHugeExponent reports whether the exponent has more than 5 digits, so that the number is out of
// range.
func hasHugeExponent(word string) bool {
	_, exponent, ok := strings.Cut(strings.ToLower(word), "e")
	digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	return ok && len(digits) > 5
}

// IsInf reports whether the number is infinite.
func (l LongDouble) IsInf() bool { return l.n.IsInf() }

// Add returns the sum of two numbers. ok is false if the sum, or one of the numbers, is infinite.
func (l LongDouble) Add(other LongDouble) (sum LongDouble, ok bool) {
	if l.IsInf() || other.IsInf() {
		return sum, false
	}
	sum.n = new(big.Float).SetPrec(longDoubleBits).Add(l.n, other.n)
	return sum, sum.n.Sign() == 0 || sum.n.MantExp(nil) <= longDoubleExponent
}

// String formats the number with at most 17 digits after the point.
func (l LongDouble) String() string {
	return trimZeros(l.n.Text('f', longDoubleDigits))
}

// longDoubleDigits is the largest number of digits after the point.
const longDoubleDigits = 17

func trimZeros(digits string) string {
	digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
	if digits == "-0" || digits == "" {
		return "0"
	}
	return digits
}

// Thousandths returns the number times 1000, rounded up. If the result overflows, it is the
// smallest integer, as in C on most machines.
func (l LongDouble) Thousandths() int64 {
	if l.IsInf() {
		return math.MinInt64
	}
	n := new(big.Float).SetPrec(longDoubleBits).Mul(l.n, big.NewFloat(1000))
	truncated, _ := n.Int64()
	switch rounded := new(big.Float).SetInt64(truncated); {
	case n.Cmp(rounded) <= 0:
		return truncated
	case truncated == math.MaxInt64:
		return math.MinInt64
	default:
		return truncated + 1
	}
}
