package escape

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text escapes each backslash, each character that is not printable, and each byte that is not
// UTF-8, as \\, \xNN or \uNNNN. It does not escape the characters in unescapedChars. A character
// above U+FFFF becomes two \uNNNN, as in JSON.
func Text(text, unescapedChars string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case strings.ContainsRune(unescapedChars, r):
			b.WriteRune(r)
		case r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case r >= 0x7f: // JSON encoders do not escape this character, and JSON has no \x
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// Cut returns at most the first limit bytes of a text, and reports whether it has cut the text. It
// does not divide a valid character.
func Cut(text string, limit int) (head string, isCut bool) {
	if len(text) <= limit {
		return text, false
	}
	for end := limit; end > limit-utf8.UTFMax && end > 0; end-- {
		if utf8.RuneStart(text[end]) {
			return text[:end], true
		}
	}
	return text[:limit], true
}

// Writer escapes text as Text does, and writes it to another writer. It leaves newlines, tabs and
// backslashes unchanged, so that JSON stays valid.
type Writer struct{ out io.Writer }

// NewWriter returns a writer that writes to out.
func NewWriter(out io.Writer) Writer { return Writer{out} }

// Write implements io.Writer. If two calls divide a character, Write escapes each of its bytes.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.out, Text(string(p), "\n\t\\")); err != nil {
		return 0, err
	}
	return len(p), nil
}
