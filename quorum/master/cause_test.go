package master

import (
	"errors"
	"strings"
	"testing"
)

// TestCauseText checks that the text of a server's error is short, and does not control a terminal.
// Line ends stay: replies to clients have blanks instead.
func TestCauseText(t *testing.T) {
	for text, want := range map[string]string{
		"EOF":                                "connection closed",
		"ERR no \\ such thing":               "ERR no \\ such thing",
		"ERR \x1b[31m\x00\r\n\xff":           "ERR \\x1b[31m\\x00\r\n\\xff",
		"ERR " + strings.Repeat("Z", 60_000): "ERR " + strings.Repeat("Z", maxCause-4) + "…",
	} {
		if got := CauseText(errors.New(text)); got != want {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
}
