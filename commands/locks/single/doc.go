// Package single has locks as a single Redis holds them: the upstream, as long as the locks have not moved from there to the masters. To the
// lock commands it is what quorum.Locker is after the move, so that parsing, replies and audit are the same code before and after.
//
// Each question goes over the client's own connection to the upstream (command.Client.Put), and so as the client: its rights and the
// state of its connection apply by themselves, and an error reply of the upstream is the client's reply. A lock is a string whose text is the
// token: SET NX PX takes it, scripts that compare it release and extend it (so that UNLOCK and EXTEND need the right to EVAL). A key of another type is held by somebody else. A validity
// leaves out as much for clocks as at the masters, so that nothing is different after the move.
//
// # Waiting
//
// Who waits stands in the queue of the key in this proxy (quorum/queue), and only the head of it tries. It sleeps until the upstream
// reports a change of the key on a connection of the proxy's own (quorum/wake: CLIENT TRACKING, which only reads), or the key's PTTL is over. Where the
// upstream refuses tracking (Redis before 6, or no right to HELLO, CLIENT TRACKING, PTTL or GETRANGE), the head tries again after
// pauses of 2 to 32 ms. A wait ends with *quorum.ElsewhereError when the locks begin to move, and when its client
// leaves. What was sent is always answered first.
//
// # What a single Redis cannot do
//
// There are no fences, and no versions: a lock that was granted to a client that left before its reply could only be removed by its token,
// which by then may be that of another grant. It ends with its TTL.
package single
