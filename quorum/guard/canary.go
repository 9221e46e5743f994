package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// A clock that jumps forward and back between two checks looks unchanged at the second check, but
// keys have expired meanwhile. So there is a canary next to each marker: a key that lives for
// canaryTTL and that proxies renew with every heartbeat. If the master's clock fits, but the canary
// is gone or has another value although it should still live by our clock, the master's clock
// jumped and came back.

// canaryTTL exceeds the time of one heartbeat and one checkup. The guard does not notice a jump
// shorter than half of canaryTTL. Such a jump can only expire leases with less than that time left.
const canaryTTL = 2 * Heartbeat

// canary holds the value of a canary key, and the time until which the key must live by our clock.
type canary struct {
	value      string
	aliveUntil time.Time
}

// newCanary returns a canary that was renewed after the time sent.
func newCanary(value string, sent time.Time) canary {
	return canary{value: value, aliveUntil: sent.Add(canaryTTL - vote.DriftMargin(canaryTTL) - clockNoise)}
}

// isMissed reports whether value shows that the master's clock jumped. A check read value from the
// canary's key before now; it is empty if the key is gone.
func (c canary) isMissed(value string, now time.Time) bool {
	return c.value != "" && c.value != value && now.Before(c.aliveUntil)
}
