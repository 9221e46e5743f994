// Package clib implements the functions of the C library that Lua 5.1 uses for numbers and
// characters. It parses and prints numbers with the same digits as C.
package clib
