// Package availability defines when locks are available. Everything that says so decides by it:
// check, healthcheck --ready, /readyz, the status page, metrics, PROXY INFO and the log. It does no
// I/O.
//
// Locks are available when the place where they are is at rest, the servers of that place take a
// write, and a majority of the masters votes. The masters take part in any case: until the locks
// are moved to them, they decide that the locks are at the upstream. Whether a server takes a write
// is found out by a [Trial].
package availability
