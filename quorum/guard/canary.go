package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// A clock that jumps forward and back between two checks looks unchanged at the second check, but
// keys have expired meanwhile. So each marker has a canary next to it: a key that lives for
// canaryTTL and that proxies renew with every heartbeat. By this machine's clock, the guard knows
// until when the canary must exist. If the canary is missing or has another value before that time,
// although the master's clock fits, the master's clock jumped and came back.

// canaryTTL exceeds the time of one heartbeat and one checkup. The guard does not notice a jump
// shorter than half of canaryTTL. Such a jump can only expire leases with less than that time left.
const canaryTTL = 2 * Heartbeat

// canary holds the value of a canary key, and the time until which the key must exist by this
// machine's clock.
type canary struct {
	value      string
	aliveUntil time.Time
}

// newCanary returns a canary that was renewed after sentAt.
func newCanary(value string, sentAt time.Time) canary {
	return canary{value: value, aliveUntil: sentAt.Add(canaryTTL - vote.DriftMargin(canaryTTL) - clockNoise)}
}

// isMissed reports whether value shows that the master's clock jumped. A check read value from the
// canary's key before now. value is empty if the key is missing.
func (c canary) isMissed(value string, now time.Time) bool {
	return c.value != "" && c.value != value && now.Before(c.aliveUntil)
}
