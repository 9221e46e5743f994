package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// The waits that several parts of the guard go by.

const (
	// grace is how long a master is in quarantine before it can catch up: longer than
	// a round may take that its vote counted in. The rest is for clocks that do not run
	// alike.
	grace = vote.RoundLimit + vote.RoundLimit/10
	// allLooked is how long it takes until every proxy that lives and reaches the
	// master has looked at it again, left there what it knows, or objected.
	allLooked = 2*Heartbeat + grace
)

// Heartbeat is how long a master may be idle before it is looked at.
const Heartbeat = time.Second

// leaseWait is after how long every lease of up to longest is over: clocks may run by a
// hundredth faster or slower.
func leaseWait(longest time.Duration) time.Duration { return longest + vote.Allowance(longest) }
