// Package tracking tells clients that use CLIENT TRACKING about changes of the lock keys that they
// read.
//
// A [Client] remembers the lock keys that its client read, with the state that the client saw.
// After the reply, the Client sets a mark on the key at the masters (a [Mark]), and then reads the
// key again. If the state is the same, the mark reports every later change. Otherwise the Client
// notifies its client at once. After a report of a mark, the Client sets a new mark and reads the
// key in the same way. So it does not report events that change nothing for its client. Such events
// are an undone take, a master that follows late, and the proxy's own copies. The Client reports a
// key once, and then forgets it.
//
// If a Client cannot watch a key (no permission, too few masters), it reports the key at once. Two
// such reports are at least a tenth of a second apart, so the second may come later. A client that
// reads the key again after each report polls the key.
//
// No lock depends on a notification: a notification is only a hint, as with Redis.
package tracking
