// Package availability defines when locks are available. The command check, the command healthcheck
// with --ready, the path /readyz, the status page, metrics, PROXY INFO and the log report this
// state. The package does no I/O.
//
// Locks are available if they are at rest, the servers that hold them accept a write, and a
// majority of the masters votes. The masters always take part: until the locks are moved to them,
// they decide that the locks are at the upstream. A [TrialCommand] finds out whether a server
// accepts a write.
package availability
