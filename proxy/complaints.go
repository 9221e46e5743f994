package proxy

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// complaintsShown is how many complaints are logged in each complaintTime.
	complaintsShown = 10
	complaintTime   = time.Minute
)

// complaints log what anybody can cause who reaches the port, and so without end. Any
// goroutine may.
type complaints struct {
	log *slog.Logger

	mu            sync.Mutex
	since         time.Time
	shown, hidden int
}

// warn logs, or counts for the next time.
func (c *complaints) warn(now time.Time, text string, about ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= complaintTime {
		c.since, c.shown = now, 0
	}
	if c.shown == complaintsShown {
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
