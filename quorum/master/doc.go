// Package master carries operations to one of N Redis masters and its answers back, and knows
// whether it is up.
//
// Each database of a [Master] has a lane: a queue and one pipelined batch in flight, while the next
// one collects. So the operations of a database reach a master in the order in which they were
// asked, and those on one key do so whether they are long or not. Several batches in flight, on
// several connections, were measured over 2.5 ms and more of distance: no faster at 1 to 64
// clients, slower at 256, and dearer at 16 and more.
//
// A lane has a link, a connection of its own (link.go, dial.go). go-redis dials it, logs in and
// finds out which server it reached; from then on it is read and written here. A batch is one write
// and, mostly, one read. The caller that finds the lane idle writes; the link's goroutine stays in
// its read, hands out the answers, and writes what has collected meanwhile. So nothing is woken
// only to send, and the end of a connection is noticed before the next batch. A caller that knows
// of an op which is about to follow, as a release does of the take of who waits for the lock,
// leaves the sending to that one's caller, for 200 µs. What may have left and was not answered is
// unknown; what never left has failed, and is not.
//
// What is long, or is known to be under the keys of an operation, has batches of its own, in turn
// with the others and a megabyte in each (long.go): else one client that reads long values would
// have all others wait for them, and a batch could take so long that all masters seem to be down.
// What nobody knew to be that long may come all the same: a master that is in the midst of its
// answers is waited for, and a string for which there is no room is read over. What a long value
// costs is the master's own work, 1.4 ms for each 900 KB that a script reads there and 4.5 ms for
// each that one sets. So it goes to no more than a minority of the masters at a time (turns.go), in
// the order of the configuration where they are free: a majority of the others answers at once what
// is short. A second connection for it would not help.
//
// What a master sends is not believed. The links read with the bounds of package resp, and so does
// everything that goes through go-redis, which else makes room for whatever length it is told. An
// answer beyond the bounds, of another kind, or to no question ends the connection. A panic over an
// answer costs that batch and connection.
//
// A master that refuses, hangs or answers too late is down: what is queued for it fails at once,
// nothing waits for it any more, and a prober alone dials it, with a growing, jittered pause.
// Before it votes again it gets the removals that it is owed. How long a master is waited for grows
// with the time that its answers take (patience.go); what is given up counts as unknown, so that
// decides nothing else.
//
// A connection that times out is reset (SO_LINGER 0): what it had not yet delivered is, mostly, not
// delivered late. Nothing relies on that.
package master
