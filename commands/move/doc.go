// Package move moves the locks on lock keys from the upstream to the masters, or back, by the rules
// of package quorum/place. It is what PROXY MOVE and redlock-proxy move run.
//
// [Mover.Move] is a run, from its first look to the report (run.go). It has each step decided by
// the masters, waits for all proxies to hold back (holding.go), ends whatever else may write at the
// upstream (ending.go), and copies (copying.go) from one store to another: the upstream
// (atupstream.go, with contents.go for what its types are here, clock.go for when they end), and
// the masters (atmasters.go). The way back is the same with the stores exchanged.
//
// A run that fails gives up: then it is decided that the locks stay where they are, which they did
// all the while. Where it could not do even that, or died, the lease of the moving place is over
// soon, and any proxy has that decided.
package move
