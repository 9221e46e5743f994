package guard

import (
	"time"

	"redlock-proxy/quorum/vote"
)

// Waits that concern several parts of the guard.

const (
	// roundGrace is the time in quarantine before a master can catch up. It exceeds the longest
	// time of a round in which the master's vote counted, with a margin for differences between
	// clocks.
	roundGrace = vote.RoundLimit + vote.RoundLimit/10
	// allCheckedTime is the time after which every running proxy that reaches a master has checked
	// it again. By then each proxy has published its knowledge, or contradicted the claim of a
	// master.
	allCheckedTime = 2*Heartbeat + roundGrace
	// shortPause is the wait between two checks of a master while news of other masters is near:
	// their rules, sources for a copy, or the decision on a change or a move.
	shortPause = 20 * time.Millisecond
)

// Heartbeat is the longest time without a check of an idle master.
const Heartbeat = time.Second

// leaseWait returns the time after which every lease of at most longestTTL has expired. Clocks may
// run a hundredth faster or slower.
func leaseWait(longestTTL time.Duration) time.Duration {
	return longestTTL + vote.DriftMargin(longestTTL)
}
