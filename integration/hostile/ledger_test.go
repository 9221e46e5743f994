//go:build integration

package hostile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// lockRecord records the locks of the honest clients.
type lockRecord struct {
	mu         sync.Mutex
	holders    map[string]holder
	grants     int
	errors     map[string]int
	violations []string
	latencies  map[string][]time.Duration // of replies, since the last call of report or p99
}

// holder is the holder of a key. By its own clock, its lease does not expire before expiresAt.
type holder struct {
	token     string
	expiresAt time.Time
}

func newLockRecord() *lockRecord {
	return &lockRecord{holders: map[string]holder{}, errors: map[string]int{}, latencies: map[string][]time.Duration{}}
}

// recordGrant records a grant. If another client holds the key within its lease, recordGrant
// records a violation.
func (l *lockRecord) recordGrant(key, token string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants++
	if current, isHeld := l.holders[key]; isHeld && time.Now().Before(current.expiresAt) {
		l.violations = append(l.violations, fmt.Sprintf("%s was granted to %s while %s held it", key, token, current.token))
	}
	l.holders[key] = holder{token, until}
}

// recordLatency records the latency of a reply.
func (l *lockRecord) recordLatency(command string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies[command] = append(l.latencies[command], d)
}

// p99 returns the p99 of the latencies of each kind of command since the last call of p99 or
// report.
func (l *lockRecord) p99() map[string]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p99 := map[string]time.Duration{}
	for command, latencies := range l.latencies {
		slices.Sort(latencies)
		p99[command] = latencies[len(latencies)*99/100]
	}
	clear(l.latencies)
	return p99
}

// recordRelease records that a holder is about to release its lock.
func (l *lockRecord) recordRelease(key, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders[key].token == token {
		delete(l.holders, key)
	}
}

// countError counts an error by its full text.
func (l *lockRecord) countError(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors[kind]++
}

// report returns the latencies and the errors since the last call of report.
func (l *lockRecord) report() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, command := range slices.Sorted(maps.Keys(l.latencies)) {
		latencies := l.latencies[command]
		slices.Sort(latencies)
		fmt.Fprintf(&text, "%s %.1f (%.1f, %d) ", command, milliseconds(latencies[len(latencies)*99/100]),
			milliseconds(latencies[len(latencies)/2]), len(latencies))
	}
	if len(l.errors) > 0 {
		fmt.Fprintf(&text, "errors %v", l.errors)
	}
	clear(l.latencies)
	clear(l.errors)
	return text.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
