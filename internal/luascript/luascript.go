// Package luascript has a Lua script as the commands of Redis that run it need it.
package luascript

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script is a Lua script with its SHA-1, as EVAL and EVALSHA need them.
type Script struct{ Source, SHA string }

// New is that of a text.
func New(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source, hex.EncodeToString(sum[:])}
}

// Call is the command that runs it on keys. With whole set it is sent as such instead of by its
// SHA.
func (s Script) Call(whole bool, keys []string, args ...any) []any {
	words := make([]any, 0, 3+len(keys)+len(args))
	if whole {
		words = append(words, "EVAL", s.Source, len(keys))
	} else {
		words = append(words, "EVALSHA", s.SHA, len(keys))
	}
	for _, key := range keys {
		words = append(words, key)
	}
	return append(words, args...)
}
