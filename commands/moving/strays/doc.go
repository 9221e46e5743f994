// Package strays notices lock keys at the upstream while the locks are at the masters: somebody locks there directly, and whoever locks through
// a proxy knows nothing of it.
//
// As long as the locks are at the masters the upstream reports changes of all keys that begin as lock keys do (CLIENT TRACKING with BCAST and a
// PREFIX for each glob), on one connection of the proxy's own. What is reported are names, of no database: which of them are lock keys the globs
// decide (track.go). A key that exists then was put there by somebody. One that does not was removed there, as a move does at its end, or is
// over: that is noticed only the second time, since nobody else puts it there again. Who it may have been is a guess by CLIENT LIST (who.go).
//
// Where the upstream does not report changes (before Redis 6, or for want of a right) it is looked through every 5 s if it has few keys (look.go).
// Else it is not watched, and the log says so, once. It is not watched either for a glob that begins with a wildcard: all changes of all
// keys would be reported.
package strays
