// Package syntax parses Lua 5.1 into syntax trees, with C Lua's error messages and limits.
package syntax
