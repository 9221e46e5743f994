package locks

import (
	"slices"
	"time"
)

// flightSlack is the difference in send times up to which two requests count as simultaneous. After
// a client has read its clock, its request arrives only after a write and, on a busy machine, a
// time slice of another process.
const flightSlack = 10 * time.Millisecond

// turns describes the order of service on one key.
type turns struct {
	grants    int // requests that were sent after the warm-up; all were granted
	overtaken int // how many of them were granted after a later request
	most      int // the maximum number of other grants during a wait
	least     int // the number of grants to the client with the fewest grants
	greatest  int // the number of grants to the client with the most grants
}

// inTurn reports whether every request was served before all later requests.
func (t turns) inTurn() bool { return t.grants > 0 && t.overtaken == 0 }

func (t turns) plus(other turns) turns {
	return turns{
		grants:    t.grants + other.grants,
		overtaken: t.overtaken + other.overtaken,
		most:      max(t.most, other.most),
		least:     min(t.least, other.least),
		greatest:  max(t.greatest, other.greatest),
	}
}

// countTurns counts the requests that were sent after the warm-up. Grants of the warm-up count only
// as grants to other clients.
func countTurns(pairs []pair, w window, clients int) turns {
	byGrant := slices.SortedFunc(slices.Values(pairs), func(a, b pair) int { return int(a.granted - b.granted) })
	perClient := make([]int, clients)
	var t turns
	var latest time.Duration // send time, of the requests granted so far
	for i, p := range byGrant {
		if w.warmedUp(p) {
			t.grants++
			perClient[p.client]++
			t.most = max(t.most, i-grantsBy(byGrant, p.sent))
			if latest > p.sent+flightSlack {
				t.overtaken++
			}
		}
		latest = max(latest, p.sent)
	}
	t.least, t.greatest = slices.Min(perClient), slices.Max(perClient)
	return t
}

// grantsBy returns the number of grants up to a time.
func grantsBy(byGrant []pair, at time.Duration) int {
	n, _ := slices.BinarySearchFunc(byGrant, at, func(p pair, at time.Duration) int {
		if p.granted <= at {
			return -1
		}
		return 1
	})
	return n
}
