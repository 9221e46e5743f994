// Package tracking notifies clients with CLIENT TRACKING of changes of lock keys that they read.
//
// A [Client] remembers the lock keys that were read, with the state that the client saw. After the
// reply, it sets a mark on the key at the masters ([Mark]) and then reads the key again. If the
// state is the same, the mark reports every later change; if not, the client is notified at once.
// After a report of a mark, the Client sets a new mark and reads the key in the same way. So it
// does not report events that change nothing for the client: a take that is undone, a master that
// follows late, the proxy's own copies. A key is reported once, and is then forgotten.
//
// If a key cannot be watched (no permission, too few masters), it is reported at once, or a tenth
// of a second after the last such report. A client that reads the key again each time polls.
//
// No lock depends on a notification: it is a hint, as on a Redis.
package tracking
