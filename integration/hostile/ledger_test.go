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

// ledger records the locks of the honest clients.
type ledger struct {
	mu      sync.Mutex
	holders map[string]holder
	grants  int
	errors  map[string]int
	wrong   []string
	times   map[string][]time.Duration // of replies, since the last report
}

// holder is the holder of a key, and until when it at least holds the lease, by its own clock.
type holder struct {
	token string
	until time.Time
}

func newLedger() *ledger {
	return &ledger{holders: map[string]holder{}, errors: map[string]int{}, times: map[string][]time.Duration{}}
}

// granted records a grant. It records an error if another client holds the key within its lease.
func (l *ledger) granted(key, token string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants++
	if other, held := l.holders[key]; held && time.Now().Before(other.until) {
		l.wrong = append(l.wrong, fmt.Sprintf("%s was granted to %s while %s held it", key, token, other.token))
	}
	l.holders[key] = holder{token, until}
}

// recordLatency records how long a reply took.
func (l *ledger) recordLatency(what string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.times[what] = append(l.times[what], d)
}

// p99 returns the p99 of the replies to each kind of command since its last call.
func (l *ledger) p99() map[string]time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]time.Duration{}
	for what, all := range l.times {
		slices.Sort(all)
		found[what] = all[len(all)*99/100]
	}
	clear(l.times)
	return found
}

// recordRelease records that a holder will release its lock.
func (l *ledger) recordRelease(key, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders[key].token == token {
		delete(l.holders, key)
	}
}

// failed counts an error by its full text.
func (l *ledger) failed(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors[kind]++
}

// report returns the latencies and the errors since its last call.
func (l *ledger) report() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(l.times)) {
		all := l.times[what]
		slices.Sort(all)
		fmt.Fprintf(&text, "%s %.1f (%.1f, %d) ", what, milliseconds(all[len(all)*99/100]),
			milliseconds(all[len(all)/2]), len(all))
	}
	if len(l.errors) > 0 {
		fmt.Fprintf(&text, "errors %v", l.errors)
	}
	clear(l.times)
	clear(l.errors)
	return text.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
