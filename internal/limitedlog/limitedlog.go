// Package limitedlog limits the number of log entries that clients or servers can cause.
package limitedlog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// maxEntries limits the entries that are logged in each period.
	maxEntries = 10
	period     = time.Minute
)

// Log limits the number of its entries. It is safe for concurrent use.
type Log struct {
	Logger *slog.Logger

	mu              sync.Mutex
	periodStart     time.Time
	loggedCount     int
	suppressedCount int
	// lastSuppressed logs the last suppressed entry, with further attributes. It is nil if no entry
	// was suppressed since the last logged entry.
	lastSuppressed func(attrs ...any)
}

// Warn logs a warning or, above the limit, counts it for the next log entry.
func (l *Log) Warn(now time.Time, text string, attrs ...any) { l.log(now, slog.LevelWarn, text, attrs) }

// Info logs an entry at level info or, above the limit, counts it for the next log entry.
func (l *Log) Info(now time.Time, text string, attrs ...any) { l.log(now, slog.LevelInfo, text, attrs) }

func (l *Log) log(now time.Time, level slog.Level, text string, attrs []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := func(more ...any) { l.Logger.Log(context.Background(), level, text, append(attrs, more...)...) }
	if !l.mayLog(now) {
		l.suppressedCount++
		l.lastSuppressed = entry
		return
	}
	l.write(entry, l.suppressedCount)
}

// Flush logs the last suppressed entry once another entry may be logged, so that the log ends with
// the current state.
func (l *Log) Flush(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lastSuppressed != nil && l.mayLog(now) {
		l.write(l.lastSuppressed, l.suppressedCount-1)
	}
}

// mayLog reports whether another entry may be logged.
func (l *Log) mayLog(now time.Time) bool {
	if now.Sub(l.periodStart) >= period {
		l.periodStart, l.loggedCount = now, 0
	}
	return l.loggedCount < maxEntries
}

// write logs an entry with the number of entries that were suppressed before it.
func (l *Log) write(entry func(attrs ...any), suppressed int) {
	l.loggedCount++
	if suppressed > 0 {
		entry("suppressed", suppressed)
	} else {
		entry()
	}
	l.suppressedCount, l.lastSuppressed = 0, nil
}
