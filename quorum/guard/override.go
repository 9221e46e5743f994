package guard

import (
	"sync"
	"time"
)

// override is an operator's statement of up to which TTL the masters may have forgotten locks. It
// counts once all masters have been reached for so long that every live proxy that reaches them has
// left there the longest TTL that it knows of: what proxies know takes precedence.
type override struct {
	ttl time.Duration
	// forced: it takes precedence, at once.
	forced bool
	// masters is their number; zero: there is no override.
	masters int

	mu sync.Mutex
	// runIDs are those of the masters that were reached, by their number; all is since when
	// these are all.
	runIDs map[int]string
	all    time.Time
}

func newOverride(masters int, vouched *time.Duration, forced bool) *override {
	if vouched == nil {
		return &override{}
	}
	return &override{ttl: *vouched, forced: forced, masters: masters, runIDs: map[int]string{}}
}

// reached notes that master i was reached, in whatever state. One that restarted has forgotten what
// was left there.
func (w *override) reached(i int, runID string, now time.Time) {
	if w.masters == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, reached := w.runIDs[i]; reached && known == runID {
		return
	}
	w.runIDs[i], w.all = runID, time.Time{}
	if len(w.runIDs) == w.masters {
		w.all = now
	}
}

// bound is the operator's TTL, or the largest that the masters know of if that is longer. ok is
// false while the override does not count yet.
func (w *override) bound(largest time.Duration, now time.Time) (bound time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all.IsZero() || now.Sub(w.all) < allLooked {
		return 0, false
	}
	return max(w.ttl, largest), true
}
