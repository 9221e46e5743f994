package clib

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseNumber parses a complete string as a number, with optional white space around it. As in C,
// the string ends at a zero byte.
func ParseNumber(s string) (n float64, ok bool) {
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	n, rest := ParsePrefix(s)
	if len(rest) == len(s) {
		return 0, false
	}
	return n, strings.TrimLeft(rest, spaces) == ""
}

// spaces holds the white space characters of C's isspace.
const spaces = " \t\n\v\f\r"

// ParsePrefix parses the longest number at the start of s, as C's strtod does. It accepts white
// space before the number, a sign, hexadecimal numbers, inf and nan. rest is the text after the
// number, or s if there is no number.
func ParsePrefix(s string) (n float64, rest string) {
	text := strings.TrimLeft(s, spaces)
	end := numberLength(text)
	if end == 0 {
		return 0, s
	}
	number := text[:end]
	if isHex(number) && !strings.ContainsAny(number, "pP") {
		number += "p0"
	}
	if open := strings.IndexByte(number, '('); open >= 0 {
		number = number[:open]
	}
	if strings.EqualFold(number, "-nan") {
		return math.Copysign(math.NaN(), -1), text[end:]
	}
	number = strings.TrimPrefix(strings.ToLower(number), "+")
	n, _ = strconv.ParseFloat(number, 64) // if out of range, an infinity, as in C
	return n, text[end:]
}

// numberLength returns the length of the number at the start of s, or 0.
func numberLength(s string) int {
	sign := 0
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign = 1
	}
	body := s[sign:]
	if n := wordLength(body); n > 0 {
		return sign + n
	}
	if isHex(body) {
		if n := digitsLength(body[2:], IsHexDigit, "pP"); n > 0 {
			return sign + 2 + n
		}
		return sign + 1 // the 0 of 0x
	}
	if n := digitsLength(body, IsDigit, "eE"); n > 0 {
		return sign + n
	}
	return 0
}

// wordLength returns the length of inf, infinity, nan or nan(…) at the start of s, or 0.
func wordLength(s string) int {
	for _, word := range []string{"infinity", "inf", "nan"} {
		if len(s) >= len(word) && strings.EqualFold(s[:len(word)], word) {
			if word == "nan" {
				return len(word) + nanSuffixLength(s[len(word):])
			}
			return len(word)
		}
	}
	return 0
}

func nanSuffixLength(s string) int {
	if !strings.HasPrefix(s, "(") {
		return 0
	}
	for i := 1; i < len(s); i++ {
		if s[i] == ')' {
			return i + 1
		}
		if !IsAlnum(s[i]) && s[i] != '_' {
			break
		}
	}
	return 0
}

// digitsLength returns the length of the digits at the start of s, with at most one point and,
// after at least one digit, an exponent.
func digitsLength(s string, isDigit func(byte) bool, exponent string) int {
	i, digits, points := 0, 0, 0
	for ; i < len(s); i++ {
		if s[i] == '.' && points == 0 {
			points++
		} else if isDigit(s[i]) {
			digits++
		} else {
			break
		}
	}
	if digits == 0 {
		return 0
	}
	if i == len(s) || strings.IndexByte(exponent, s[i]) < 0 {
		return i
	}
	j := i + 1
	if j < len(s) && (s[j] == '+' || s[j] == '-') {
		j++
	}
	start := j
	for j < len(s) && IsDigit(s[j]) {
		j++
	}
	if j == start {
		return i
	}
	return j
}

func isHex(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')
}

// ParseInteger parses a complete string in a base from 2 to 36, like tonumber(s, base).
func ParseInteger(s string, base int) (n float64, ok bool) {
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	s = strings.TrimLeft(s, spaces)
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if base == 16 && isHex(s) && s[0] == '0' && len(s) > 2 && IsHexDigit(s[2]) {
		s = s[2:]
	}
	end := 0
	for end < len(s) && digitValue(s[end]) < base {
		end++
	}
	if end == 0 || strings.TrimLeft(s[end:], spaces) != "" {
		return 0, false
	}
	u, err := strconv.ParseUint(s[:end], base, 64) // if out of range, the largest value, as in C
	if negative && err == nil {
		u = -u
	}
	return float64(u), true
}

// digitValue returns the value of a digit in bases up to 36, or 99.
func digitValue(c byte) int {
	switch {
	case IsDigit(c):
		return int(c - '0')
	case IsLetter(c):
		return int(c|0x20-'a') + 10
	}
	return 99
}

// FormatNumber returns a number with 14 significant digits, as Lua prints it.
func FormatNumber(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e14 && (n != 0 || !math.Signbit(n)) {
		return strconv.FormatInt(int64(n), 10)
	}
	return FormatG(n, 14)
}

// FormatG returns a number as C's printf prints it with %.<digits>g.
func FormatG(n float64, digits int) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return FormatNonFinite(n)
	}
	return fmt.Sprintf("%.*g", digits, n)
}

// FormatNonFinite returns NaN or an infinity as C prints it, including the sign of NaN: 0/0 is -nan
// on x86.
func FormatNonFinite(n float64) string {
	text := "nan"
	if !math.IsNaN(n) {
		text = "inf"
	}
	if math.Signbit(n) {
		return "-" + text
	}
	return text
}

// Truncate converts a number to an integer as C on x86 does: towards zero, or to the smallest
// integer if it does not fit.
func Truncate(n float64) int64 {
	if n >= -(1<<63) && n < 1<<63 {
		return int64(n)
	}
	return math.MinInt64
}

// Unsigned converts a number to an unsigned 64-bit integer as C on x86 does.
func Unsigned(n float64) uint64 {
	if n >= 1<<63 {
		return uint64(Truncate(n-1<<63)) ^ 1<<63
	}
	return uint64(Truncate(n))
}
