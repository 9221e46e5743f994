package status

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTextSize limits a text on the page, in bytes: clients choose the length of keys and names.
const maxTextSize = 256

// printable returns a text from clients or servers for the page. It shortens long texts. It escapes
// bytes and characters that are invisible or that change the direction of text, as \xNN or \uNNNN.
func printable(text string) string {
	var b strings.Builder
	rest := text[:min(maxTextSize, len(text))]
	for len(rest) > 0 {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1 && len(rest) < utf8.UTFMax && len(text) > maxTextSize:
			rest = rest[:size] // the cut split a character
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case r > 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
		rest = rest[size:]
	}
	if len(text) > maxTextSize {
		fmt.Fprintf(&b, "… (%d bytes)", len(text))
	}
	return b.String()
}
