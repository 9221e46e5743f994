package guard

import (
	"sync"
	"time"
)

// word is an operator's, for up to which TTL the masters may have forgotten locks. It counts
// once all masters have been reached for so long that every proxy that lives and reaches
// them has left there the longest TTL that it knows of: what proxies know beats what is said.
type word struct {
	ttl time.Duration
	// masters is their number; zero: nothing was said.
	masters int

	mu sync.Mutex
	// met are the run_ids of those that were reached, by their number; all is since when
	// these are all.
	met map[int]string
	all time.Time
}

func newWord(masters int, vouched *time.Duration) *word {
	if vouched == nil {
		return &word{}
	}
	return &word{ttl: *vouched, masters: masters, met: map[int]string{}}
}

// meet is for master i, whatever its standing. One that restarted has forgotten what was
// left there.
func (w *word) meet(i int, runID string, now time.Time) {
	if w.masters == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, met := w.met[i]; met && known == runID {
		return
	}
	w.met[i], w.all = runID, time.Time{}
	if len(w.met) == w.masters {
		w.all = now
	}
}

// bound is the word, or the largest TTL that the masters know of if that is longer. ok is
// false where it does not count yet.
func (w *word) bound(largest time.Duration, now time.Time) (bound time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all.IsZero() || now.Sub(w.all) < allLooked {
		return 0, false
	}
	return max(w.ttl, largest), true
}
