package guard

import (
	"sync"
	"time"
)

// override holds Options.Override. The proxies' knowledge takes precedence, so the override counts
// once all masters have been connected long enough for every running proxy to publish it.
type override struct {
	ttl time.Duration
	// forced gives the statement precedence over the proxies' knowledge, at once.
	forced bool
	// masters is the number of masters; zero if there is no override.
	masters int

	mu sync.Mutex
	// runIDs holds, by index, the run_ids of the masters that this proxy has reached.
	// allReachedSince is the time since which it has reached all masters.
	runIDs          map[int]string
	allReachedSince time.Time
}

func newOverride(masters int, ttl *time.Duration, forced bool) *override {
	if ttl == nil {
		return &override{}
	}
	return &override{ttl: *ttl, forced: forced, masters: masters, runIDs: map[int]string{}}
}

// noteReached records that this proxy has reached a master, in any state. After a restart of the
// master the wait begins anew, because the master may have lost the TTLs that proxies published.
func (w *override) noteReached(i int, runID string, now time.Time) {
	if w.masters == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if lastRunID, reached := w.runIDs[i]; reached && lastRunID == runID {
		return
	}
	w.runIDs[i], w.allReachedSince = runID, time.Time{}
	if len(w.runIDs) == w.masters {
		w.allReachedSince = now
	}
}

// bound returns the operator's TTL, or the largest TTL that the masters know if that is longer. ok
// is false while the override does not count yet.
func (w *override) bound(largestTTL time.Duration, now time.Time) (bound time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allReachedSince.IsZero() || now.Sub(w.allReachedSince) < allCheckedTime {
		return 0, false
	}
	return max(w.ttl, largestTTL), true
}
