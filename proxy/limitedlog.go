package proxy

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// warningsShown limits the warnings that are logged in each warningTime.
	warningsShown = 10
	warningTime   = time.Minute
)

// limitedLog logs warnings that any client can cause, and limits how many. Any goroutine may use
// it.
type limitedLog struct {
	log *slog.Logger

	mu            sync.Mutex
	since         time.Time
	shown, hidden int
}

// warn logs a warning or, above the limit, counts it for the next log entry.
func (c *limitedLog) warn(now time.Time, text string, about ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= warningTime {
		c.since, c.shown = now, 0
	}
	if c.shown == warningsShown {
		c.hidden++
		return
	}
	c.shown++
	if c.hidden > 0 {
		about = append(about, "like_it_before_and_not_shown", c.hidden)
		c.hidden = 0
	}
	c.log.Warn(text, about...)
}
