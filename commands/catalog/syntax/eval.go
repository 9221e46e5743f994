package syntax

import (
	"strconv"
	"strings"
)

// NoScript is the error for an unknown SHA-1. Client libraries then send the whole script.
const NoScript = "NOSCRIPT No matching script. Please use EVAL."

// SHALength is the length of a SHA-1 in hexadecimal.
const SHALength = 40

// IsEval reports whether a command, by its name in lower case, runs a script of the client.
func IsEval(name string) bool {
	switch name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro":
		return true
	}
	return false
}

// TakesSHA reports whether an EVAL command takes the SHA-1 of a script.
func TakesSHA(name string) bool { return strings.HasPrefix(name, "evalsha") }

// KeyCount returns the number of keys of an EVAL or FCALL with total words. ok is false if Redis
// rejects the number. KeyCount accepts +1 and 01, as old versions of Redis do.
func KeyCount(words [][]byte, total int) (n int, ok bool) {
	if len(words) < 3 {
		return 0, false
	}
	count, err := strconv.ParseInt(string(words[2]), 10, 64)
	return int(count), err == nil && count >= 0 && count <= int64(total-3)
}

// EvalFailure returns the error with which Redis rejects the form of an EVAL or EVALSHA, or an
// empty string.
func EvalFailure(name string, words []string) string {
	if len(words) < 3 {
		return WrongArity(name)
	}
	if TakesSHA(name) && len(words[1]) != SHALength {
		return NoScript
	}
	n, ok := Int(words[2])
	switch {
	case !ok:
		return ErrNotInteger
	case n > int64(len(words)-3):
		return "ERR Number of keys can't be greater than number of args"
	case n < 0:
		return "ERR Number of keys can't be negative"
	}
	return ""
}
