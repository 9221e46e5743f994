package clib

import "strings"

// UpToZero is a string as C's printf shows it: up to a zero byte.
func UpToZero(s string) string {
	head, _, _ := strings.Cut(s, "\x00")
	return head
}

// IsDigit reports whether c is one of 0 to 9.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// IsAlnum reports whether c is a letter or a digit.
func IsAlnum(c byte) bool { return IsDigit(c) || IsLetter(c) }

// IsHexDigit reports whether c is a digit of a hexadecimal number.
func IsHexDigit(c byte) bool {
	return IsDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// IsBlank reports whether c is what C's isspace takes for a blank.
func IsBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// ToLower is a letter in lower case, and anything else as it is.
func ToLower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// ToUpper is a letter in upper case, and anything else as it is.
func ToUpper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}
