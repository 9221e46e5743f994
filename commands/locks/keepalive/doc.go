// Package keepalive renews locks while the connections of their clients live: LOCK and EXTEND with
// KEEPALIVE.
//
// A [Keeper] holds the kept locks of all clients of a proxy, in one queue that is ordered by time.
// A renewal is an ordinary EXTEND for the masters and the register. [Keeper.Run] waits for the next
// renewal with one timer. One round extends the locks that are due at the same time, and decides
// about each lock independently. A lock that this round does not extend gets an EXTEND of its own.
// A [Holder] holds the kept locks of one client. It ends with the connection, and notifies a RESP3
// client of each renewal and of each loss. schedule.go computes the time of each renewal, and the
// time until which the client may rely on the lock. It does no I/O.
//
// # Goroutines and locks
//
// Run has one goroutine, and starts up to maxWorkers goroutines while renewals are due. A Holder
// has one goroutine while there are pushes to write. Keeper.mu guards all kept locks. No goroutine
// holds Keeper.mu while it waits. A goroutine may lock Keeper.mu while it holds the mutex of the
// client's writer, but not the other way round.
package keepalive
