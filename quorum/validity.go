package quorum

import "time"

// driftFixed is the part of the clock drift allowance that does not grow with
// the TTL: Redis expires keys with a precision of 1 ms.
const driftFixed = 2 * time.Millisecond

// Validity is how long a lock may still be relied on: its TTL, less the time
// since just before the first master was asked (monotonic), less 1 % of the TTL
// and 2 ms for clocks that do not run alike. Zero or less means that the lock
// must not be used.
func Validity(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - ttl/100 - driftFixed
}
