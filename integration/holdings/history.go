package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Holding describes the time during which a client may rely on a lock, by the monotonic clock of
// the test process. It begins when the client receives the grant. It ends when the client begins to
// release the lock, or with the validity if that is earlier.
type Holding struct {
	Token    string
	From, To time.Duration
}

// NewHolding returns the holding of a client whose lock was valid until the given time. The client
// began to release the lock at released, or never if released is 0.
func NewHolding(token string, received, until, released time.Duration) Holding {
	if released > 0 {
		until = min(until, released)
	}
	return Holding{Token: token, From: received, To: until}
}

// Overlap describes a violation: a client was granted a lock while another client could rely on it.
type Overlap struct{ first, second Holding }

// String names the two clients, with their times.
func (o Overlap) String() string {
	return fmt.Sprintf("%s held it from %v to %v, and %s from %v to %v: %v together",
		o.first.Token, o.first.From, o.first.To, o.second.Token, o.second.From, o.second.To,
		min(o.first.To, o.second.To)-o.second.From)
}

// overlaps returns every holding that begins within an earlier holding, with the earlier holding
// that ends last.
func overlaps(history []Holding) []Overlap {
	ordered := slices.Clone(history)
	slices.SortStableFunc(ordered, func(a, b Holding) int { return cmp.Compare(a.From, b.From) })
	var result []Overlap
	var latestHolding Holding // the earlier holding that ends last
	for i, h := range ordered {
		if i > 0 && h.From < latestHolding.To {
			result = append(result, Overlap{latestHolding, h})
		}
		if h.To > latestHolding.To {
			latestHolding = h
		}
	}
	return result
}

// History collects the holdings of one lock.
type History struct {
	startedAt time.Time

	mu       sync.Mutex
	holdings []Holding
}

// NewHistory returns a history that begins now.
func NewHistory() *History { return HistorySince(time.Now()) }

// HistorySince returns a history that begins at the given time, which several histories can share.
func HistorySince(startedAt time.Time) *History { return &History{startedAt: startedAt} }

// Now returns the time since the history began.
func (h *History) Now() time.Duration { return time.Since(h.startedAt) }

// Add adds a holding, and returns the number of holdings.
func (h *History) Add(holding Holding) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holdings = append(h.holdings, holding)
	return len(h.holdings)
}

// Overlaps returns every holding that begins within an earlier holding. It must be called after all
// clients have ended.
func (h *History) Overlaps() []Overlap { return overlaps(h.holdings) }

// Conflicts returns the sets of holdings that overlap at one moment and for which conflict returns
// true, one for each holding that begins in such a set. It must be called after all clients have
// ended.
func (h *History) Conflicts(conflict func(together []Holding) bool) (found [][]Holding) {
	ordered := slices.Clone(h.holdings)
	slices.SortStableFunc(ordered, func(a, b Holding) int { return cmp.Compare(a.From, b.From) })
	var together []Holding
	for _, next := range ordered {
		together = slices.DeleteFunc(together, func(earlier Holding) bool { return earlier.To <= next.From })
		if next.To <= next.From {
			continue
		}
		together = append(together, next)
		if conflict(together) {
			found = append(found, slices.Clone(together))
		}
	}
	return found
}

// Count returns the number of holdings.
func (h *History) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holdings)
}
