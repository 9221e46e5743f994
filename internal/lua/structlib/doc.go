// Package structlib implements the library struct of Redis' scripts, which packs numbers and texts
// into a string. Its results and errors are the same as in Redis 7.0 on x86. C does not define the
// result for a number that is too large for an integer.
package structlib
