package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// A clock that jumps forward and back between two checks looks unchanged at the second one, but
// keys have expired meanwhile. So there is a canary next to each marker: a key that lives for
// canaryTTL and is renewed with every heartbeat. Suppose that the canary is gone, or has another
// value, although it should still live by our clock, and the master's clock fits. Then time jumped
// and came back.

// canaryTTL is longer than a heartbeat and a checkup take together. A jump shorter than half of it
// is not noticed. Such a jump can only expire leases that were about to expire.
const canaryTTL = 2 * Heartbeat

// canary is a canary, and the time until which it must live by our clock.
type canary struct {
	value      string
	aliveUntil time.Time
}

// newCanary returns a canary that was renewed after the time sent.
func newCanary(value string, sent time.Time) canary {
	return canary{value: value, aliveUntil: sent.Add(canaryTTL - vote.DriftMargin(canaryTTL) - clockNoise)}
}

// isMissed reports whether a different value, or none, shows that time jumped. The value was read
// before now.
func (c canary) isMissed(value string, now time.Time) bool {
	return c.value != "" && c.value != value && now.Before(c.aliveUntil)
}
