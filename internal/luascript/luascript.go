// Package luascript builds the Redis commands that run a Lua script.
package luascript

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script holds the source of a Lua script and its SHA-1 in hexadecimal, for EVAL and EVALSHA.
type Script struct{ Source, SHA string }

// New returns the script with the given source.
func New(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source, hex.EncodeToString(sum[:])}
}

// Command returns the command that runs the script on keys: EVAL with the source if withSource is
// set, else EVALSHA.
func (s Script) Command(withSource bool, keys []string, args ...any) []any {
	words := make([]any, 0, 3+len(keys)+len(args))
	if withSource {
		words = append(words, "EVAL", s.Source, len(keys))
	} else {
		words = append(words, "EVALSHA", s.SHA, len(keys))
	}
	for _, key := range keys {
		words = append(words, key)
	}
	return append(words, args...)
}
