// Package syntax reads Lua 5.1: sources become trees, with C Lua's messages for mistakes and with
// its limits.
package syntax
