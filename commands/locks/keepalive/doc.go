// Package keepalive renews locks while the connections of their clients live: LOCK and EXTEND with
// KEEPALIVE.
//
// A [Keeper] holds the kept locks of all clients of a proxy, in one queue that is ordered by time.
// A renewal is an ordinary EXTEND; the masters and the register know of no other. [Keeper.Run]
// waits for the next renewal with one timer. Renewals that are due together run together, so that
// they share batches to the masters. A [Holder] is one client's part: it ends with the connection,
// and tells a RESP3 client of each renewal and of each loss. schedule.go decides when a lock is
// renewed and until when its client may rely on it; it does no I/O.
//
// # Goroutines and locks
//
// Run has one goroutine, and starts up to maxWorkers goroutines while renewals are due. A Holder
// has one goroutine while there are pushes to write. Keeper.mu guards all kept locks. No goroutine
// holds it while it waits; a goroutine may take it while it holds the lock of the client's writer,
// but not the other way round.
package keepalive
