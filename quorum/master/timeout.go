package master

import (
	"math"
	"sync"
	"time"
)

const (
	// maxAdaptiveTimeout limits the adaptive timeout, unless the configured timeout is longer. It
	// is less than the limit of a round.
	maxAdaptiveTimeout = 500 * time.Millisecond
	// slowAnswerFactor is the ratio of a master's time limit to its slowest recent reply time.
	slowAnswerFactor = 4
	// extraHalfLife is the half-life of the extra time.
	extraHalfLife = 2 * time.Second
)

// adaptiveTimeout computes the time limit for a reply of a master. The limit is the configured
// timeout, and more while the master's replies are slow, for example on a busy machine. The price
// is that the proxy notices a little later that a master hangs. The limit only decides when to stop
// waiting: an operation without a reply counts as unknown.
type adaptiveTimeout struct {
	base, limit time.Duration
	now         func() time.Time

	mu sync.Mutex
	// extra is added to base. It decays, and was last computed at extraAt.
	extra   time.Duration
	extraAt time.Time
}

func newAdaptiveTimeout(base time.Duration) *adaptiveTimeout {
	return &adaptiveTimeout{base: base, limit: max(base, maxAdaptiveTimeout), now: time.Now}
}

func (w *adaptiveTimeout) current() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base + w.remainingExtra()
}

// remainingExtra returns the extra time after its decay. Callers hold mu.
func (w *adaptiveTimeout) remainingExtra() time.Duration {
	now := w.now()
	if w.extra > 0 {
		halves := float64(now.Sub(w.extraAt)) / float64(extraHalfLife)
		w.extra = time.Duration(float64(w.extra) * math.Exp2(-halves))
	}
	w.extraAt = now
	return w.extra
}

// observe records the time that a reply took.
func (w *adaptiveTimeout) observe(replyTime time.Duration) { w.raise(slowAnswerFactor * replyTime) }

// observeTimeout records that a reply did not arrive in time.
func (w *adaptiveTimeout) observeTimeout() { w.raise(2 * w.current()) }

// raise raises the timeout to total, within its limit.
func (w *adaptiveTimeout) raise(total time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extra = max(w.remainingExtra(), min(total, w.limit)-w.base)
}
