// Package clib implements the functions of the C library that Lua 5.1 uses for numbers and
// characters. Numbers are parsed and printed with the same digits as in C.
package clib
