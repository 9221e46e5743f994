package process

import (
	"strings"
	"testing"
)

func TestLogKeepsTheEnd(t *testing.T) {
	log := newLogBuffer()
	line := strings.Repeat("x", 1023) + "\n"
	for range logLimit/len(line) + 1 {
		_, _ = log.Write([]byte(line))
	}
	_, _ = log.Write([]byte("last\n"))
	if kept := log.String(); len(kept) > logLimit || !strings.HasSuffix(kept, "last\n") {
		t.Errorf("%d bytes kept, ending in %q", len(kept), kept[len(kept)-10:])
	}
}
