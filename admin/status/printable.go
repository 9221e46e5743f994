package status

import (
	"fmt"
	"unicode/utf8"

	"redlock-proxy/internal/escape"
)

// maxTextSize limits a text on the page, in bytes: clients choose the length of keys and names.
const maxTextSize = 256

// printable returns a text from clients or servers for the page. It shortens long texts, and
// escapes all of them.
func printable(text string) string {
	if len(text) <= maxTextSize {
		return escape.Text(text, "")
	}
	return escape.Text(text[:cutBefore(text)], "") + fmt.Sprintf("… (%d bytes)", len(text))
}

// cutBefore returns the index up to which a long text is shown: where a character begins.
func cutBefore(text string) int {
	for end := maxTextSize; end > maxTextSize-utf8.UTFMax; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return maxTextSize
}
