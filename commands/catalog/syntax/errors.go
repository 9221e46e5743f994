package syntax

import (
	"fmt"
	"time"
)

// Errors in the wording of Redis; the text is the reply.
const (
	ErrSyntax     = "ERR syntax error"
	ErrNotInteger = "ERR value is not an integer or out of range"
)

// shownBytes is how much of a name or of its arguments an error shows.
const shownBytes = 128

// Shown is a word as errors show it.
func Shown[S ~string | ~[]byte](word S) []byte { return CString([]byte(word), shownBytes) }

// WrongArity is the error for a wrong number of words.
func WrongArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}

// InvalidExpire is the error for a time that a command cannot take.
func InvalidExpire(name string) string {
	return fmt.Sprintf("ERR invalid expire time in '%s' command", name)
}

// ExpireTooShort is the error for a TTL of which nothing would be left.
func ExpireTooShort(command string) string {
	return InvalidExpire(command) + ": too short to be granted"
}

// ExpireOverLimit is the error for a TTL that a command may not ask for.
func ExpireOverLimit(command string, limit time.Duration) string {
	return fmt.Sprintf("%s: over max-ttl, %d ms", InvalidExpire(command), limit.Milliseconds())
}

// UnknownCommand is the error for a command that there is not. words may be its first ones only:
// Redis shows no more than 128 bytes of them.
func UnknownCommand(words [][]byte) string {
	shown := ""
	for _, w := range words[1:] {
		if len(shown) >= shownBytes {
			break
		}
		shown += fmt.Sprintf("'%s' ", CString(w, shownBytes-len(shown)))
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", Shown(words[0]), shown)
}

// UnknownSubcommand is the error for one that a command does not have.
func UnknownSubcommand(command string, sub []byte) string {
	return fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", Shown(sub), command)
}
