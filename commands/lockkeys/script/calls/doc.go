// Package calls finds the Redis commands that a script calls, and their arguments, in its source.
package calls
