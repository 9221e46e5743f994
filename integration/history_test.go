//go:build integration

package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// holding is the time in which a client may take a lock for its own: from the receipt of the grant, to when it begins to give the
// lock back, or to the end of the validity if that comes first. Times are those of the test process' monotonic clock.
type holding struct {
	token    string
	from, to time.Duration
}

// relied is the holding of a client that was granted a lock until a time and began to give it back at another; 0: it never did.
func relied(token string, received, until, released time.Duration) holding {
	if released > 0 {
		until = min(until, released)
	}
	return holding{token: token, from: received, to: until}
}

// overlap is a client that was granted a lock while another could rely on it.
type overlap struct{ first, second holding }

func (o overlap) String() string {
	return fmt.Sprintf("%s held it from %v to %v, and %s from %v to %v: %v together",
		o.first.token, o.first.from, o.first.to, o.second.token, o.second.from, o.second.to,
		min(o.first.to, o.second.to)-o.second.from)
}

// overlaps finds every holding that begins within an earlier one; of several earlier ones it names the longest.
func overlaps(history []holding) []overlap {
	ordered := slices.Clone(history)
	slices.SortStableFunc(ordered, func(a, b holding) int { return cmp.Compare(a.from, b.from) })
	var found []overlap
	var longest holding // of those before
	for i, h := range ordered {
		if i > 0 && h.from < longest.to {
			found = append(found, overlap{longest, h})
		}
		if h.to > longest.to {
			longest = h
		}
	}
	return found
}

// history collects what many clients saw of one lock.
type history struct {
	began time.Time

	mu       sync.Mutex
	holdings []holding
}

func newHistory() *history { return &history{began: time.Now()} }

// now is the time since the history began.
func (h *history) now() time.Duration { return time.Since(h.began) }

// add takes a holding and returns how many there are.
func (h *history) add(one holding) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holdings = append(h.holdings, one)
	return len(h.holdings)
}

// count is how many holdings there are.
func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holdings)
}

func TestOverlaps(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		holdings []holding
		want     []string // the tokens of those that came too early
	}{
		{"nobody", nil, nil},
		{"one after the other", []holding{relied("a", 0, 20*ms, 5*ms), relied("b", 5*ms, 25*ms, 9*ms)}, nil},
		{"b came while a held", []holding{relied("a", 0, 20*ms, 5*ms), relied("b", 4*ms, 24*ms, 9*ms)}, []string{"b"}},
		{"the same, recorded in another order", []holding{relied("b", 4*ms, 24*ms, 9*ms), relied("a", 0, 20*ms, 5*ms)}, []string{"b"}},
		{"a never gave it back, b came in its last moment", []holding{relied("a", 0, 20*ms, 0), relied("b", 19*ms, 39*ms, 21*ms)}, []string{"b"}},
		{"a gave it back when it had lost it already", []holding{relied("a", 0, 20*ms, 30*ms), relied("b", 20*ms, 40*ms, 40*ms)}, nil},
		{"c came while a held, but not b", []holding{relied("a", 0, 20*ms, 0), relied("b", 1*ms, 21*ms, 2*ms), relied("c", 19*ms, 39*ms, 20*ms)}, []string{"b", "c"}},
		{"both at once", []holding{relied("a", 3*ms, 23*ms, 5*ms), relied("b", 3*ms, 23*ms, 4*ms)}, []string{"b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range overlaps(test.holdings) {
				got = append(got, o.second.token)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestOverlapsOfAnyHistory compares with the definition: somebody else, who came no later, has not ended yet.
func TestOverlapsOfAnyHistory(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var all []holding
		for from := range random.Perm(random.IntN(12)) { // no two begin together: which of them was second is a matter of taste
			begin := time.Duration(from * 10)
			all = append(all, holding{from: begin, to: begin + 1 + time.Duration(random.IntN(40))})
		}
		want := 0
		for _, h := range all {
			if slices.ContainsFunc(all, func(other holding) bool { return other.from < h.from && h.from < other.to }) {
				want++
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if got := len(overlaps(all)); got != want {
			t.Fatalf("seed %d: got %d overlaps, want %d: %v", seed, got, want, all)
		}
	}
}
