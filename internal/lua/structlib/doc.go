// Package structlib implements the library struct of Redis' scripts, which packs numbers and texts
// into a string. Its results and errors are the same as in Redis 7.0 on x86. This includes the
// results for numbers that are too large for an integer, which C does not define.
package structlib
