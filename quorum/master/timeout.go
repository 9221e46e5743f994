package master

import (
	"math"
	"sync"
	"time"
)

const (
	// maxAdaptiveTimeout limits the time limit, unless the configured timeout is longer. It is less
	// than a round may take.
	maxAdaptiveTimeout = 500 * time.Millisecond
	// slowAnswerFactor is how many times longer than its slowest recent answer a master may take.
	slowAnswerFactor = 4
	// extraHalfLife is the time after which half of the extra time is removed.
	extraHalfLife = 2 * time.Second
)

// adaptiveTimeout is the time limit for an answer of a master: the configured timeout, and more
// while its answers are slow, as those of all masters are on a busy machine. A master that hangs is
// noticed a little later because of that. The limit only decides when to stop waiting: an operation
// without an answer counts as unknown.
type adaptiveTimeout struct {
	base, limit time.Duration
	now         func() time.Time

	mu sync.Mutex
	// extra is added to base. It is valid as of at.
	extra time.Duration
	at    time.Time
}

func newAdaptiveTimeout(base time.Duration) *adaptiveTimeout {
	return &adaptiveTimeout{base: base, limit: max(base, maxAdaptiveTimeout), now: time.Now}
}

// current returns the current time limit.
func (w *adaptiveTimeout) current() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base + w.remainingExtra()
}

// remainingExtra returns the remaining extra time.
func (w *adaptiveTimeout) remainingExtra() time.Duration {
	now := w.now()
	if w.extra > 0 {
		halves := float64(now.Sub(w.at)) / float64(extraHalfLife)
		w.extra = time.Duration(float64(w.extra) * math.Exp2(-halves))
	}
	w.at = now
	return w.extra
}

// observe records the time that an answer took.
func (w *adaptiveTimeout) observe(took time.Duration) { w.raise(slowAnswerFactor * took) }

// observeTimeout records that an answer did not come in time.
func (w *adaptiveTimeout) observeTimeout() { w.raise(2 * w.current()) }

func (w *adaptiveTimeout) raise(all time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extra = max(w.remainingExtra(), min(all, w.limit)-w.base)
}
