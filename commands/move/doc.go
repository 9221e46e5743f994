// Package move moves the locks on lock keys from the upstream to the masters, or back, by the rules
// of package quorum/location. PROXY MOVE and redlock-proxy move run it.
//
// [Mover.Move] makes a run, from its first check (check.go) to the report (run.go). The masters
// decide each step. The run waits until all proxies have paused the commands on lock keys, and
// closes all other connections that may write at the upstream (ending.go). Then it copies the locks
// from one store to the other (copying.go). The stores are the upstream (atupstream.go, with
// contents.go for the types of values) and the masters (atmasters.go). A move back to the upstream
// exchanges the stores.
//
// A run that fails aborts: it proposes that the locks stay at the source, where they still are. If
// it cannot propose that, or crashes, the lease of the move expires soon. Then any proxy makes this
// proposal.
package move
