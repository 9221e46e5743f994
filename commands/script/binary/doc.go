// Package binary has the libraries of Redis' scripts that are about bits and bytes: struct, which packs numbers and texts into a string,
// and bit. They answer, and fail, as those of Redis 7.0 do on x86: its C leaves open what a number too large for an integer becomes.
package binary
