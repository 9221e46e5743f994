// Package tracking notifies clients with CLIENT TRACKING that lock keys which they have read may
// hold something else by now.
//
// A [Client] remembers the lock keys that were read, with what was reported of them. When the reply
// is out it sets a mark at the masters ([Mark]) and then reads the key once more: if it still holds
// the same, every later change is reported by the mark; if not, the client hears at once. When a
// mark has news the same is done again, so that what changes nothing for the client (a take that is
// undone, a master that follows late, the proxy's own copies) is not reported to it. A key is
// reported once, and is forgotten then.
//
// Where a key cannot be watched (no right to do so, too few masters) it is reported at once, or a
// tenth of a second after the last such one: a client that reads it in turns with hearing of it
// polls.
//
// Nothing is decided here about locks: this is a hint, as it is on a Redis.
package tracking
