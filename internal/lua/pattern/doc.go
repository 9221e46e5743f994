// Package pattern matches Lua patterns on bytes, by backtracking as C Lua does, and charges a meter
// for the work.
package pattern
