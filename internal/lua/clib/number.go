package clib

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseNumber reads all of a string as a number, blanks around it allowed. As in C, the string ends
// at a zero byte.
func ParseNumber(s string) (n float64, ok bool) {
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	n, rest := ParsePrefix(s)
	if len(rest) == len(s) {
		return 0, false
	}
	return n, strings.TrimLeft(rest, blanks) == ""
}

// blanks are what C's isspace takes for a blank.
const blanks = " \t\n\v\f\r"

// ParsePrefix reads the longest number at the start of s, as C's strtod does: blanks before it, a
// sign, hexadecimal, inf and nan too. rest is what follows; all of s if there is no number.
func ParsePrefix(s string) (n float64, rest string) {
	text := strings.TrimLeft(s, blanks)
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
	n, _ = strconv.ParseFloat(number, 64) // out of range is an infinity, as in C
	return n, text[end:]
}

// numberLength is the length of the number at the start of s.
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

// wordLength is the length of inf, infinity, nan or nan(…).
func wordLength(s string) int {
	for _, word := range []string{"infinity", "inf", "nan"} {
		if len(s) >= len(word) && strings.EqualFold(s[:len(word)], word) {
			if word == "nan" {
				return len(word) + nanSuffix(s[len(word):])
			}
			return len(word)
		}
	}
	return 0
}

func nanSuffix(s string) int {
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

// digitsLength is the length of digits with at most one point and, behind at least one digit, an
// exponent.
func digitsLength(s string, digit func(byte) bool, exponent string) int {
	i, digits, points := 0, 0, 0
	for ; i < len(s); i++ {
		if s[i] == '.' && points == 0 {
			points++
		} else if digit(s[i]) {
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
	first := j
	for j < len(s) && IsDigit(s[j]) {
		j++
	}
	if j == first {
		return i
	}
	return j
}

func isHex(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')
}

// ParseInteger reads all of s in a base from 2 to 36, as tonumber(s, base) does.
func ParseInteger(s string, base int) (n float64, ok bool) {
	if end := strings.IndexByte(s, 0); end >= 0 {
		s = s[:end]
	}
	s = strings.TrimLeft(s, blanks)
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
	if end == 0 || strings.TrimLeft(s[end:], blanks) != "" {
		return 0, false
	}
	u, err := strconv.ParseUint(s[:end], base, 64) // out of range is the largest, as in C
	if negative && err == nil {
		u = -u
	}
	return float64(u), true
}

// digitValue is the value of a digit in bases up to 36.
func digitValue(c byte) int {
	switch {
	case IsDigit(c):
		return int(c - '0')
	case IsLetter(c):
		return int(c|0x20-'a') + 10
	}
	return 99
}

// FormatNumber prints a number with 14 digits, which is all that Lua shows of it.
func FormatNumber(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e14 && (n != 0 || !math.Signbit(n)) {
		return strconv.FormatInt(int64(n), 10)
	}
	return FormatG(n, 14)
}

// FormatG prints a number as C's printf does with %.<digits>g.
func FormatG(n float64, digits int) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return FormatNoNumber(n)
	}
	return fmt.Sprintf("%.*g", digits, n)
}

// FormatNoNumber prints NaN and the infinities as C does. The sign of NaN shows: 0/0 is -nan on
// x86.
func FormatNoNumber(n float64) string {
	text := "nan"
	if !math.IsNaN(n) {
		text = "inf"
	}
	if math.Signbit(n) {
		return "-" + text
	}
	return text
}

// Truncate is the integer that C makes of a number: towards zero, and the smallest if it does not
// fit.
func Truncate(n float64) int64 {
	if n >= -(1<<63) && n < 1<<63 {
		return int64(n)
	}
	return math.MinInt64
}

// Unsigned is what C on x86 makes of a number that it wants as 64 bits without a sign.
func Unsigned(n float64) uint64 {
	if n >= 1<<63 {
		return uint64(Truncate(n-1<<63)) ^ 1<<63
	}
	return uint64(Truncate(n))
}
