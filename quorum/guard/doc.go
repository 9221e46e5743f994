// Package guard answers, for each batch of operations that goes to one of N independent Redis
// masters, whether the master's votes count, or why not: a master that may have forgotten something
// that it agreed to does not vote. It knows nothing of what is voted about.
//
// A [Set] guards the masters of a cluster, a [Guard] one of them. Before a batch leaves,
// [Guard.Begin] prepares a [Check], whose look at the master goes at the end of the batch; when the
// answers are there, [Guard.Weigh] says why the votes do not count, or nothing. [Guard.Checkup],
// called at least once a [Heartbeat] and whenever the guard asks for it, finds out whether the
// master votes, and gets it out of quarantine.
//
// A master is reached through a [Conn]; [Redis] is one to a Redis. What is decided without asking
// anything is in files of its own: clocks (clock.go, whoseclock.go), what a master that forgot is
// to hold (copying.go), the longest TTL in use (longest.go), and what proxies announce of
// themselves (proxy.go). Package marker has what is written on a master, package script how that is
// changed there, and package reconfig which set of masters follows which.
//
// GUARD.md has the invariant, its proof, the numbers, and what this does not close.
package guard
