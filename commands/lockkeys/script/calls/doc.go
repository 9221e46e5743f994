// Package calls finds the Redis commands that a script calls, and their arguments, without running
// it.
package calls
