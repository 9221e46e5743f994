package syntax

import (
	"strconv"
	"strings"
)

// NoScript is the answer to a SHA-1 that nobody knows. Client libraries decide by it to send the
// whole script.
const NoScript = "NOSCRIPT No matching script. Please use EVAL."

// SHALength is that of a SHA-1 in hexadecimal.
const SHALength = 40

// IsEval is true of the commands that run a script of the client's, by name in lower case.
func IsEval(name string) bool {
	switch name {
	case "eval", "evalsha", "eval_ro", "evalsha_ro":
		return true
	}
	return false
}

// BySHA is true of those that give it by its SHA-1.
func BySHA(name string) bool { return strings.HasPrefix(name, "evalsha") }

// KeyCount is how many keys an EVAL or FCALL of so many words is given; ok is false where Redis
// refuses it for its words. An old Redis takes +1 and 01.
func KeyCount(words [][]byte, total int) (n int, ok bool) {
	if len(words) < 3 {
		return 0, false
	}
	count, err := strconv.ParseInt(string(words[2]), 10, 64)
	return int(count), err == nil && count >= 0 && count <= int64(total-3)
}

// EvalFailure is Redis' error for the words of an EVAL or EVALSHA, or nothing.
func EvalFailure(name string, words []string) string {
	if len(words) < 3 {
		return WrongArity(name)
	}
	if BySHA(name) && len(words[1]) != SHALength {
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
