// Package lease holds a lock at a running proxy while a command runs. A [Lock] is taken, extended
// and released over the Redis protocol, as by any client. [Job.Run] runs a command meanwhile, and
// stops it if the lock is lost.
package lease
