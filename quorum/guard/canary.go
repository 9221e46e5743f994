package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// A clock that jumps forward and back between two looks has not moved when it is looked
// at, but keys have expired in between. So beside each marker there is a canary: a key that
// lives for canaryLife and is renewed with every heartbeat. Where it is gone, or another
// one, although it should still live by our clock, and the clock itself fits, time jumped
// and came back.

// canaryLife is longer than a heartbeat and what a checkup may take. A jump that is shorter
// than its half is not seen; it can only end leases that were about to end.
const canaryLife = 2 * Heartbeat

// canary is one that was seen alive, and until when it must live by our clock.
type canary struct {
	value string
	until time.Time
}

// renewedAt is a canary that was renewed after sent.
func renewedAt(value string, sent time.Time) canary {
	return canary{value: value, until: sent.Add(canaryLife - vote.Allowance(canaryLife) - clockNoise)}
}

// isMissed reports whether another value, or none, at a moment before now means that time
// jumped.
func (c canary) isMissed(value string, now time.Time) bool {
	return c.value != "" && c.value != value && now.Before(c.until)
}
