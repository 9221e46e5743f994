// Package clib does with numbers and characters what the C library does for Lua 5.1: reads and
// prints them to the same digits.
package clib
