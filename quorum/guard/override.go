package guard

import (
	"sync"
	"time"
)

// override is an operator's statement of the longest TTL of the locks that the masters may have
// lost. The proxies' knowledge takes precedence. So the override counts once all masters have been
// connected long enough for every running proxy to publish the longest TTL that it knows.
type override struct {
	ttl time.Duration
	// forced gives the statement precedence, at once.
	forced bool
	// masters is the number of masters; zero if there is no override.
	masters int

	mu sync.Mutex
	// runIDs holds the run_ids of the masters that were reached, by index. allReachedSince is the
	// time since which these are all masters.
	runIDs          map[int]string
	allReachedSince time.Time
}

func newOverride(masters int, ttl *time.Duration, forced bool) *override {
	if ttl == nil {
		return &override{}
	}
	return &override{ttl: *ttl, forced: forced, masters: masters, runIDs: map[int]string{}}
}

// noteReached records that a master was reached, in any state. A master that restarted has lost all
// published numbers.
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
func (w *override) bound(largest time.Duration, now time.Time) (bound time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.allReachedSince.IsZero() || now.Sub(w.allReachedSince) < allCheckedTime {
		return 0, false
	}
	return max(w.ttl, largest), true
}
