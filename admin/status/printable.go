package status

import (
	"fmt"

	"redlock-proxy/internal/escape"
)

// maxTextSize limits a text on the page, in bytes: clients choose the length of keys and names.
const maxTextSize = 256

// makePrintable returns a text from clients or servers for the page. It escapes every text, and
// shortens long texts.
func makePrintable(text string) string {
	head, isCut := escape.Cut(text, maxTextSize)
	if !isCut {
		return escape.Text(head, "")
	}
	return escape.Text(head, "") + fmt.Sprintf("… (%d bytes)", len(text))
}
