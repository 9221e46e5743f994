package redistest

import (
	"bufio"
	"strings"
	"testing"
)

func TestReadRaw(t *testing.T) {
	for _, c := range replies {
		r := bufio.NewReader(strings.NewReader(c.encoded + "+next\r\n"))
		if got, err := ReadRaw(r); err != nil || string(got) != c.encoded {
			t.Errorf("%.40q: %.40q, %v", c.encoded, got, err)
		}
		if next, err := ReadRaw(r); err != nil || string(next) != "+next\r\n" {
			t.Errorf("%.40q: then %q, %v", c.encoded, next, err)
		}
	}
	for _, wire := range []string{"\r\n", "PING\r\n", "$x\r\n", "*1\r\nx\r\n", "$5\r\nab",
		strings.Repeat("*1\r\n", maxDepth+2)} {
		if got, err := ReadRaw(bufio.NewReader(strings.NewReader(wire))); err == nil {
			t.Errorf("%.40q: %q; want an error", wire, got)
		}
	}
}
