// Package pattern matches Lua's patterns on bytes, by backtracking as C Lua does, and counts what
// that costs.
package pattern
