// Package master transports operations to one of N Redis masters and the replies back, and knows
// whether the master is up.
//
// Each database of a [Master] has a lane: a queue and one pipelined batch in flight, while the next
// batch collects. So the operations of a database reach the master in the order of the queue.
// Operations on the same key keep that order even if some of them are long. Several batches in
// flight, on several connections, were measured at a distance of 2.5 ms and more: not faster with 1
// to 64 clients, slower with 256, and more expensive with 16 and more.
//
// A lane has a link, a connection of its own (link.go, dial.go). go-redis dials it, logs in and
// checks which server it reached; from then on this package reads and writes it. A batch is one
// write and, mostly, one read. The caller that finds the lane idle writes. The goroutine of the
// link stays in its read, delivers the replies, and writes the ops that have collected meanwhile.
// So no goroutine is woken only to send, and a closed connection is noticed before the next batch.
// A caller may know that an op is about to follow: a release is followed by the take of a client
// that waits for the lock. Then it leaves the sending to the caller of that op, for up to 200 µs.
// The outcome of an op that may have been sent but was not answered is unknown. An op that was
// never sent has failed, and has no effect.
//
// Long operations, and operations on keys with long values, have batches of their own, of one
// megabyte each, in turn with the other batches (long.go). Otherwise all clients would wait for one
// client that reads long values, and a batch could take so long that all masters seem to be down.
// An unexpected long value can still arrive. So the link waits for a master as long as it keeps
// sending, and skips a string that exceeds the limits. A long value costs the master 1.4 ms for
// each 900 KB that a script reads, and 4.5 ms for each 900 KB that it writes. So only a minority of
// the masters gets long operations at the same time (turns.go), in the order of the configuration
// if they are free. A majority of the masters answers short operations at once. A second connection
// for long operations would not help.
//
// The package does not trust the masters' replies. The links, and all reads through go-redis, use
// the limits of package resp; go-redis alone would allocate any announced length. A reply that
// exceeds the limits, has the wrong type, or belongs to no request ends the connection. A panic
// over a reply affects only that batch and connection.
//
// A master that refuses, hangs or answers too late is down. Queued ops fail at once, no operation
// waits for the master, and only a prober dials it, with a growing, jittered pause. Before it votes
// again it gets its pending removals. The time limit for its replies grows with the time that they
// take (timeout.go). An op that exceeds it counts as unknown, so the limit decides nothing else.
//
// A connection that times out is reset (SO_LINGER 0), so undelivered data is rarely delivered late.
// No part of the protocol relies on that.
package master
