package status

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxShown is how many bytes of a text are shown: keys and names are as long as clients like.
const maxShown = 256

// shown is a text of others as the page has it: what cannot be seen, or turns round what can, is
// written as \xNN or \uNNNN.
func shown(text string) string {
	var b strings.Builder
	rest := text[:min(maxShown, len(text))]
	for len(rest) > 0 {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1 && len(rest) < utf8.UTFMax && len(text) > maxShown:
			rest = rest[:size] // the cut went through it
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
	if len(text) > maxShown {
		fmt.Fprintf(&b, "… (%d bytes)", len(text))
	}
	return b.String()
}
