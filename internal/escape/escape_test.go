package escape_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"redlock-proxy/internal/escape"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "lock:job": "lock:job", "<script>": "<script>", "a b": "a b", "ключ": "ключ", `a\x00`: `a\\x00`,
		"a\x00\n\x7f": `a\x00\x0a\u007f`, "\xff\xc3": `\xff\xc3`, "a\u202eb\u200b": `a\u202eb\u200b`,
		"\U000e0001": `\udb40\udc01`, "\u009b31m": `\u009b31m`, "\ufffd": "\ufffd",
	} {
		if got := escape.Text(text, ""); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestCut checks that a text is cut where a character begins.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text, head string
		isCut      bool
	}{
		{"abcd", "abcd", false}, {"abcde", "abcd", true}, {"abcé", "abc", true}, {"ab\U0001f600", "ab", true},
		{"\xff\xff\xff\xff\xff", "\xff\xff\xff\xff", true}, {"\x80\x80\x80\x80\x80", "\x80\x80\x80\x80", true},
	} {
		if head, isCut := escape.Cut(c.text, 4); head != c.head || isCut != c.isCut {
			t.Errorf("%q: got %q, %v", c.text, head, isCut)
		}
	}
}

// TestWriter checks that text for a terminal cannot control the terminal, that lines and columns
// remain, and that JSON stays valid.
func TestWriter(t *testing.T) {
	var out strings.Builder
	w := escape.NewWriter(&out)
	const text = "a\tb\\n\n\x1b]0;x\a\x1b[2J\rok\x9b…"
	if n, err := w.Write([]byte(text)); n != len(text) || err != nil || out.String() != "a\tb\\n\n"+`\x1b]0;x\x07\x1b[2J\x0dok\x9b`+"…" {
		t.Errorf("%d, %v: %q", n, err, out.String())
	}
	out.Reset()
	const hostileText = "\x1b\a\r\x00\x7f\u009b\u202e\U000e0001\\\"ключ"
	if err := json.NewEncoder(w).Encode(hostileText); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got != hostileText {
		t.Errorf("%s: %q, %v", out.String(), got, err)
	}
	if n, err := escape.NewWriter(fullWriter{}).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("%d bytes written to a writer that is full, %v", n, err)
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
