// Package lease holds a lock at a running proxy while a command runs. A [Lock] is taken and
// released over the Redis protocol, as by any client. The proxy renews it (KEEPALIVE), and
// [Lock.Keep] lets another proxy take over if this proxy fails. [Job.Run] runs a command meanwhile,
// and stops the command if the lock is lost.
package lease
