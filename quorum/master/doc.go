// Package master transports operations to one of N Redis masters and the replies back, and knows
// whether the master is up.
//
// Each database of a [Master] has a lane: a queue and one pipelined batch in flight, while the next
// batch collects. So the operations of a database reach the master in the order of the queue.
// Operations on the same key keep that order even if some of them are long. Measurements with
// several batches in flight, on several connections, showed no gain at round trips of 2.5 ms and
// more. Several batches were not faster with 1 to 64 clients, and slower with 256 clients. With 16
// or more clients they were also more expensive.
//
// A lane has its own connection, the link (link.go, dial.go). go-redis dials it, logs in and checks
// which server it reached; from then on this package reads and writes it. A batch is one write and,
// mostly, one read. The caller that finds the lane idle writes the batch. The goroutine of the link
// waits in its read, delivers the replies, and writes the ops that have collected meanwhile. So no
// goroutine wakes only to send, and the link notices a closed connection before the next batch. A
// caller may know that an op is about to follow: a release is followed by the take of a client that
// waits for the lock. Then it leaves the sending to the caller of the next op, for up to 200 µs.
// The outcome of an op that may have been sent but was not answered is unknown. An op that was
// never sent has failed, and has no effect.
//
// Long operations, and operations on keys with long values, have separate batches of about one
// megabyte, in turn with the other batches (long.go). Otherwise all clients would wait for one
// client that reads long values, and a batch could take so long that all masters seem to be down.
// An unexpected long value can still arrive. So the link waits as long as the master keeps sending,
// and skips a string that exceeds the limits. A long value costs the master 1.4 ms for each 900 KB
// that a script reads, and 4.5 ms for each 900 KB that it writes. So only a minority of the masters
// gets long operations at the same time (turns.go). A majority of the masters then answers short
// operations at once. A second connection for long operations would not help.
//
// The package does not trust the masters' replies. The links, and all reads through go-redis, use
// the limits of package resp; go-redis alone would allocate any announced length. The link breaks
// the connection after a reply that exceeds the limits, has the wrong type, or belongs to no
// request. A panic while processing a reply affects only that batch and connection.
//
// A master that refuses connections, hangs or answers too late is down. Queued ops fail at once, no
// operation waits for the master, and only a prober dials it, with a growing, jittered pause.
// Before the master votes again it gets its pending removals. The time limit for replies grows
// while replies are slow (timeout.go). The result of an op that exceeds the limit is unknown. The
// limit has no other effect on a result.
//
// A connection that times out is reset (SO_LINGER 0), so undelivered data is rarely delivered late.
// No part of the protocol relies on that.
package master
