package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holding is the time in which a client may take a lock for its own: from the receipt of the grant,
// to when it begins to give the lock back, or to the end of the validity if that comes first. Times
// are those of the test process' monotonic clock.
type Holding struct {
	Token    string
	From, To time.Duration
}

// Relied is the holding of a client that was granted a lock until a time and began to give it back
// at another; 0: it never did.
func Relied(token string, received, until, released time.Duration) Holding {
	if released > 0 {
		until = min(until, released)
	}
	return Holding{Token: token, From: received, To: until}
}

// Overlap is a client that was granted a lock while another could rely on it.
type Overlap struct{ first, second Holding }

// String tells who held the lock together, and for how long.
func (o Overlap) String() string {
	return fmt.Sprintf("%s held it from %v to %v, and %s from %v to %v: %v together",
		o.first.Token, o.first.From, o.first.To, o.second.Token, o.second.From, o.second.To,
		min(o.first.To, o.second.To)-o.second.From)
}

// overlaps finds every holding that begins within an earlier one; of several earlier ones it names
// the longest.
func overlaps(history []Holding) []Overlap {
	ordered := slices.Clone(history)
	slices.SortStableFunc(ordered, func(a, b Holding) int { return cmp.Compare(a.From, b.From) })
	var found []Overlap
	var longest Holding // of those before
	for i, h := range ordered {
		if i > 0 && h.From < longest.To {
			found = append(found, Overlap{longest, h})
		}
		if h.To > longest.To {
			longest = h
		}
	}
	return found
}

// History collects what many clients saw of one lock.
type History struct {
	began time.Time

	mu       sync.Mutex
	holdings []Holding
}

// NewHistory begins now.
func NewHistory() *History { return HistorySince(time.Now()) }

// HistorySince is one whose times count from a moment that it has in common with others.
func HistorySince(began time.Time) *History { return &History{began: began} }

// Now is the time since the history began.
func (h *History) Now() time.Duration { return time.Since(h.began) }

// Add takes a holding and returns how many there are.
func (h *History) Add(one Holding) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holdings = append(h.holdings, one)
	return len(h.holdings)
}

// Overlaps finds all of a history to which nobody adds any more: every holding that begins within
// an earlier one.
func (h *History) Overlaps() []Overlap { return overlaps(h.holdings) }

// Count is how many holdings there are.
func (h *History) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holdings)
}
