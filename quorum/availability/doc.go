// Package availability defines when locks are available, for everything that reports it: check,
// healthcheck --ready, /readyz, the status page, metrics, PROXY INFO and the log. It does no I/O.
//
// Locks are available if they are at rest, the servers that hold them accept a write, and a
// majority of the masters votes. The masters always take part: until the locks are moved to them,
// they decide that the locks are at the upstream. A [Trial] finds out whether a server accepts a
// write.
package availability
