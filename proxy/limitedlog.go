package proxy

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// maxWarnings limits the warnings that are logged in each warningPeriod.
	maxWarnings   = 10
	warningPeriod = time.Minute
)

// limitedLog limits the number of warnings that clients can cause. It is safe for concurrent use.
type limitedLog struct {
	log *slog.Logger

	mu                           sync.Mutex
	periodStart                  time.Time
	loggedCount, suppressedCount int
}

// warn logs a warning or, above the limit, counts it for the next log entry.
func (c *limitedLog) warn(now time.Time, text string, attrs ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.periodStart) >= warningPeriod {
		c.periodStart, c.loggedCount = now, 0
	}
	if c.loggedCount == maxWarnings {
		c.suppressedCount++
		return
	}
	c.loggedCount++
	if c.suppressedCount > 0 {
		attrs = append(attrs, "like_it_before_and_not_shown", c.suppressedCount)
		c.suppressedCount = 0
	}
	c.log.Warn(text, attrs...)
}
