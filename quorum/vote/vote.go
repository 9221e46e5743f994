// Package vote is the arithmetic of majorities and leases.
package vote

import "time"

// Majority is the least number of n masters of which any two such sets share one:
// ⌊n/2⌋+1.
func Majority(n int) int { return n/2 + 1 }

// ReadQuorum is the least number of n masters that shares one with every majority: who
// reads so many sees what a majority wrote.
func ReadQuorum(n int) int { return n - Majority(n) + 1 }

// RoundLimit is how long a round may take that gives a client something: what comes later
// counts for nothing. A master that forgot what it agreed to waits longer than this before
// it copies what the others hold, so it is the same for all proxies, and no setting may
// change it.
const RoundLimit = 600 * time.Millisecond

// driftFixed is the part of the clock drift allowance that does not grow with the TTL:
// Redis expires keys with a precision of 1 ms.
const driftFixed = 2 * time.Millisecond

// Validity is how long a lock may still be relied on: its TTL, less the time since just
// before the first master was asked (monotonic), less 1 % of the TTL and 2 ms for clocks
// that do not run alike. Below a millisecond the lock must not be used. A negative TTL is
// one without end, and so is its validity.
//
// Source: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
func Validity(ttl, elapsed time.Duration) time.Duration {
	if ttl < 0 {
		return ttl
	}
	return ttl - elapsed - Allowance(ttl)
}

// Allowance is how much of a lease is not relied on, for clocks that do not run alike: 1 %
// of it, and 2 ms.
func Allowance(lease time.Duration) time.Duration { return lease/100 + driftFixed }

// Shortest is the least TTL of which anything is left to rely on: a validity of a
// millisecond.
const Shortest = 4 * time.Millisecond
