// Package lease holds a lock at a running proxy while a command runs. A [Lock] is taken, kept and
// given back over the Redis protocol, as any client does it; [Run] runs a command meanwhile, and
// ends it should the lock be lost.
package lease
