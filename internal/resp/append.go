package resp

import (
	"fmt"
	"strconv"

	"github.com/tidwall/redcon"
)

// AppendCommand appends a command to b. It panics if a word is not a string, int or int64, because
// that is a mistake in the program.
func AppendCommand(b []byte, words ...any) []byte {
	b = redcon.AppendArray(b, len(words))
	for _, word := range words {
		switch word := word.(type) {
		case string:
			b = redcon.AppendBulkString(b, word)
		case int:
			b = AppendNumber(b, int64(word))
		case int64:
			b = AppendNumber(b, word)
		default:
			panic(fmt.Sprintf("resp: a word of type %T", word))
		}
	}
	return b
}

// AppendWords appends a command that consists of strings.
func AppendWords(b []byte, words ...string) []byte {
	b = redcon.AppendArray(b, len(words))
	for _, word := range words {
		b = redcon.AppendBulkString(b, word)
	}
	return b
}

// AppendNumber appends a bulk string with a number.
func AppendNumber(b []byte, n int64) []byte {
	var digits [maxDigits + 1]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	b = AppendHeader(b, Bulk, int64(len(text)))
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// AppendHeader appends a line with a number: an integer, a null, or the header of an element with a
// length.
func AppendHeader(b []byte, kind Kind, n int64) []byte {
	b = append(b, byte(kind))
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}
