// Package vote computes majorities and leases.
package vote

import "time"

// Majority returns the least number of n masters such that any two sets of this size share a
// master: ⌊n/2⌋+1.
func Majority(n int) int { return n/2 + 1 }

// ReadQuorum returns the least number of masters such that any set of this size shares a master
// with every majority of n. A proxy that reads this number of masters sees every value that a
// majority wrote.
func ReadQuorum(n int) int { return n - Majority(n) + 1 }

// RoundLimit limits the duration of a round that grants something to a client. Later replies do not
// count. After a master has lost its data, a proxy waits longer than RoundLimit before it copies
// the cells of other masters to that master. So all proxies must use the same limit, and no setting
// changes it.
const RoundLimit = 600 * time.Millisecond

// driftFixed is the constant part of the clock drift allowance: Redis expires keys with a precision
// of 1 ms.
const driftFixed = 2 * time.Millisecond

// Validity returns the time for which a client may still rely on a lock: the TTL minus elapsed,
// minus 1 % of the TTL and 2 ms for clock drift. elapsed is the monotonic time since just before
// the proxy asked the first master. A lock with a validity below one millisecond must not be used.
// A negative TTL means no expiry; then the validity is also negative.
//
// Source: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
func Validity(ttl, elapsed time.Duration) time.Duration {
	if ttl < 0 {
		return ttl
	}
	return ttl - elapsed - DriftMargin(ttl)
}

// DriftMargin returns the part of a lease on which no client may rely because of clock drift: 1 %
// plus 2 ms.
func DriftMargin(lease time.Duration) time.Duration { return lease/100 + driftFixed }

// MinTTL is the least TTL, in whole milliseconds, with a validity of at least one millisecond.
const MinTTL = 4 * time.Millisecond
