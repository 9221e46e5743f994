package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// A canary is a key next to each marker. If it is missing too early, the master's clock jumped
// forward and came back; see GUARD.md (The canary).

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
