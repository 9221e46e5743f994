// Package availability defines when locks are available. The command check, the command healthcheck
// with --ready, the path /readyz, the status page, metrics, PROXY INFO and the log report this
// state. The package does no I/O.
//
// Locks are available if they are not being moved, the servers that hold them accept a write, and
// a majority of the masters votes. The votes matter even while the locks are at the upstream,
// because the masters decide on the location of the locks. A [TrialCommand] finds out whether a
// server accepts a write.
package availability
