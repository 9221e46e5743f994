// Package guard decides, for each batch of operations sent to one of N independent Redis masters,
// whether the master's votes count. A master that may have lost data does not vote. Only the
// catch-up of such a master and LocksOn depend on the contents of the lock keys.
//
// A [Set] guards the masters of a cluster, a [Guard] one of them. Before a batch is sent,
// [Guard.Begin] prepares a [Check] to be sent at the end of the batch. When the replies have
// arrived, [Guard.Evaluate] returns nil, or the reason why the votes do not count. [Guard.Checkup]
// must be called at least once per [Heartbeat], and whenever the guard requests a checkup. Checkup
// decides whether the master may vote, and ends the master's quarantine.
//
// A guard reaches its master through a [Conn]; [Redis] implements Conn for a Redis server.
// Decisions without I/O are in separate files: clocks (clock.go, whoseclock.go), the copy for a
// master that lost its data (copying.go), the longest TTL in use (maxttl.go), and the announcements
// of proxies (proxy.go). Package marker defines the texts that proxies store on a master. Package
// script defines the scripts that change these texts. Package reconfig defines the sequence of sets
// of masters.
//
// GUARD.md contains the invariants, their proofs, the numbers, and the known limits.
package guard
