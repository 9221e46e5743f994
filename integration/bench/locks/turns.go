package locks

import (
	"slices"
	"time"
)

// sendTolerance is the difference in send times up to which two requests count as simultaneous.
// After a client has read its clock, its request arrives only after a write and, on a busy machine,
// a time slice of another process.
const sendTolerance = 10 * time.Millisecond

// serviceOrder describes the order of service on one key.
type serviceOrder struct {
	grants            int // requests that were sent after the warm-up; all were granted
	overtakenRequests int // number of requests that were granted after a later request
	maxTurnsWaited    int // the maximum number of grants to other clients during a wait
	fewestGrants      int // the number of grants to the client with the fewest grants
	mostGrants        int // the number of grants to the client with the most grants
}

// isInTurn reports whether every request was served before all later requests.
func (t serviceOrder) isInTurn() bool { return t.grants > 0 && t.overtakenRequests == 0 }

func (t serviceOrder) add(other serviceOrder) serviceOrder {
	return serviceOrder{
		grants:            t.grants + other.grants,
		overtakenRequests: t.overtakenRequests + other.overtakenRequests,
		maxTurnsWaited:    max(t.maxTurnsWaited, other.maxTurnsWaited),
		fewestGrants:      min(t.fewestGrants, other.fewestGrants),
		mostGrants:        max(t.mostGrants, other.mostGrants),
	}
}

// serviceOrderOf counts the requests that were sent after the warm-up. Grants of the warm-up count
// only as grants to other clients.
func serviceOrderOf(pairs []pair, w window, clients int) serviceOrder {
	byGrant := slices.SortedFunc(slices.Values(pairs), func(a, b pair) int { return int(a.grantTime - b.grantTime) })
	perClient := make([]int, clients)
	var t serviceOrder
	var latestSendTime time.Duration // the latest send time of the requests granted so far
	for i, p := range byGrant {
		if w.isAfterWarmUp(p) {
			t.grants++
			perClient[p.client]++
			t.maxTurnsWaited = max(t.maxTurnsWaited, i-grantsUntil(byGrant, p.sendTime))
			if latestSendTime > p.sendTime+sendTolerance {
				t.overtakenRequests++
			}
		}
		latestSendTime = max(latestSendTime, p.sendTime)
	}
	t.fewestGrants, t.mostGrants = slices.Min(perClient), slices.Max(perClient)
	return t
}

// grantsUntil returns the number of grants up to a time.
func grantsUntil(pairsByGrant []pair, at time.Duration) int {
	n, _ := slices.BinarySearchFunc(pairsByGrant, at, func(p pair, at time.Duration) int {
		if p.grantTime <= at {
			return -1
		}
		return 1
	})
	return n
}
