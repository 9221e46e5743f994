package syntax

import (
	"fmt"
	"strconv"
	"time"
)

// Errors in Redis' wording. The text is the reply.
const (
	ErrSyntax     = "ERR syntax error"
	ErrNotInteger = "ERR value is not an integer or out of range"
)

// maxExcerpt limits how much of a name or of arguments an error shows, in bytes.
const maxExcerpt = 128

// Count returns a number of things in words, such as "1 lock key" or "2 lock keys".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Excerpt returns a word as errors show it.
func Excerpt[S ~string | ~[]byte](word S) []byte { return CString([]byte(word), maxExcerpt) }

// WrongArity returns the error for a wrong number of words.
func WrongArity(name string) string {
	return fmt.Sprintf("ERR wrong number of arguments for '%s' command", name)
}

// InvalidExpire returns the error for an expiry that a command does not accept.
func InvalidExpire(name string) string {
	return fmt.Sprintf("ERR invalid expire time in '%s' command", name)
}

// ExpireTooShort returns the error for a TTL so short that no validity would remain.
func ExpireTooShort(command string) string {
	return InvalidExpire(command) + ": too short to be granted"
}

// ExpireOverLimit returns the error for a TTL above the limit.
func ExpireOverLimit(command string, limit time.Duration) string {
	return fmt.Sprintf("%s: the TTL exceeds max-ttl (%d ms)", InvalidExpire(command), limit.Milliseconds())
}

// UnknownCommand returns the error for an unknown command. words may hold only the first words of
// the command, because Redis shows at most 128 bytes of its arguments.
func UnknownCommand(words [][]byte) string {
	shown := ""
	for _, w := range words[1:] {
		if len(shown) >= maxExcerpt {
			break
		}
		shown += fmt.Sprintf("'%s' ", CString(w, maxExcerpt-len(shown)))
	}
	return fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", Excerpt(words[0]), shown)
}

// UnknownSubcommand returns the error for an unknown subcommand.
func UnknownSubcommand(command string, sub []byte) string {
	return fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", Excerpt(sub), command)
}
