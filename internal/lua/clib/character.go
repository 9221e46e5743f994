package clib

import "strings"

// CutAtZero returns s up to its first zero byte, as C's printf prints it.
func CutAtZero(s string) string {
	head, _, _ := strings.Cut(s, "\x00")
	return head
}

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// IsLetter reports whether c is an ASCII letter.
func IsLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// IsAlnum reports whether c is an ASCII letter or a decimal digit.
func IsAlnum(c byte) bool { return IsDigit(c) || IsLetter(c) }

// IsHexDigit reports whether c is a hexadecimal digit.
func IsHexDigit(c byte) bool {
	return IsDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// IsSpace reports whether c is white space, as C's isspace does.
func IsSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// ToLower returns an ASCII letter in lower case, and any other byte unchanged.
func ToLower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// ToUpper returns an ASCII letter in upper case, and any other byte unchanged.
func ToUpper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}
