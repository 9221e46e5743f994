package limitedlog

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/internal/logtest"
)

// TestLimit checks that a master that keeps going down and up causes few log entries. The log
// counts the suppressed entries, and ends with the last state of the master.
func TestLimit(t *testing.T) {
	var text logtest.Buffer
	log, now := &Log{Logger: slog.New(slog.NewTextHandler(&text, nil))}, time.Unix(1_700_000_000, 0)
	for range 100 {
		log.Warn(now, "down")
		log.Info(now, "up", "master", "a")
		now = now.Add(100 * time.Millisecond)
		log.Flush(now)
	}
	if got := strings.Count(text.String(), "\n"); got != maxEntries {
		t.Errorf("%d entries in 10 s, want %d", got, maxEntries)
	}
	for range 2 {
		now = now.Add(period)
		log.Flush(now)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) != maxEntries+1 ||
		!strings.HasSuffix(last, "level=INFO msg=up master=a suppressed=189") {
		t.Errorf("%d entries, the last is %s", len(lines), last)
	}
	log.Warn(now, "down")
	if !strings.HasSuffix(text.String(), "level=WARN msg=down\n") {
		t.Errorf("the next entry: %s", text.String())
	}
}
