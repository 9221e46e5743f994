package process

import (
	"strings"
	"testing"
)

func TestLogKeepsLastOutput(t *testing.T) {
	log := newLogBuffer()
	line := strings.Repeat("x", 1023) + "\n"
	for range logLimit/len(line) + 1 {
		_, _ = log.Write([]byte(line))
	}
	_, _ = log.Write([]byte("last\n"))
	if text := log.String(); len(text) > logLimit || !strings.HasSuffix(text, "last\n") {
		t.Errorf("%d bytes kept, ending in %q", len(text), text[len(text)-10:])
	}
}
