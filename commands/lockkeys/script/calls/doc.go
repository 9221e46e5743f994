// Package calls finds what a script can be seen to call of Redis without running it, and with what
// arguments.
package calls
