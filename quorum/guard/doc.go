// Package guard decides, for each batch of operations sent to one of N independent Redis masters,
// whether the master's votes count, or why not. A master that may have lost data does not vote. The
// package does not depend on the subject of the votes.
//
// A [Set] guards the masters of a cluster, a [Guard] one of them. Before a batch is sent,
// [Guard.Begin] prepares a [Check] of the master, which is sent at the end of the batch. When the
// replies have arrived, [Guard.Evaluate] returns nil, or the reason why the votes do not count.
// [Guard.Checkup] must be called at least once per [Heartbeat], and whenever the guard requests it.
// It finds out whether the master votes, and ends its quarantine.
//
// A master is reached through a [Conn]; [Redis] is a Conn to a Redis server. Decisions without I/O
// are in files of their own: clocks (clock.go, whoseclock.go), the data that a master that lost its
// data must get (copying.go), the longest TTL in use (maxttl.go), and the announcements of proxies
// (proxy.go). Package marker has the texts that are stored on a master, package script the scripts
// that change them, and package reconfig the sequence of sets of masters.
//
// GUARD.md has the invariants, their proofs, the numbers, and the known limits.
package guard
