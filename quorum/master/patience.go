package master

import (
	"math"
	"sync"
	"time"
)

const (
	// patienceLimit is the longest that a master is waited for, unless more is asked for:
	// less than a round may take.
	patienceLimit = 500 * time.Millisecond
	// patienceFactor is how many times longer than its slowest answer of late a master is
	// waited for.
	patienceFactor = 4
	// patienceHalf is after how long a half of what was added is taken off again.
	patienceHalf = 2 * time.Second
)

// waiting is how long a master's answer is waited for: as long as was asked for, and
// longer while its answers are slow, as those of all masters are on a busy machine. A
// master that hangs is found out a little later for it. It decides nothing but when an
// answer is given up: what was given up counts as unknown.
type waiting struct {
	base, limit time.Duration
	now         func() time.Time

	mu sync.Mutex
	// extra is what is added to base, as of at.
	extra time.Duration
	at    time.Time
}

func newWaiting(base time.Duration) *waiting {
	return &waiting{base: base, limit: max(base, patienceLimit), now: time.Now}
}

// time is how long an answer is waited for now.
func (w *waiting) time() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base + w.left()
}

// left is what is left of the extra time.
func (w *waiting) left() time.Duration {
	now := w.now()
	if w.extra > 0 {
		halves := float64(now.Sub(w.at)) / float64(patienceHalf)
		w.extra = time.Duration(float64(w.extra) * math.Exp2(-halves))
	}
	w.at = now
	return w.extra
}

// answered takes how long an answer took.
func (w *waiting) answered(took time.Duration) { w.wants(patienceFactor * took) }

// missed is for an answer that did not come in time.
func (w *waiting) missed() { w.wants(2 * w.time()) }

func (w *waiting) wants(all time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extra = max(w.left(), min(all, w.limit)-w.base)
}
