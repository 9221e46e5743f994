// Package watch notifies waiters for a lock when the lock may be free, so that they need not poll.
// While nothing changes, the masters get no requests.
//
// A [Watcher] has a watch for each master and database with waiters: a separate connection on which
// the master reports changes (HELLO 3, CLIENT TRACKING ON). A waiter sets an [Alarm] for the key.
// The alarm reads the key on all masters (PTTL, GETRANGE of the head of its cell), which arms each
// master. The master then reports the next change of the key once, whether by a command of any
// client, by expiry, eviction or FLUSHALL. A [View] summarizes the results of the reads and the
// changes reported since.
//
// A waiter for a value under a key sets an alarm for any change ([Watcher.NewChangeAlarm]), even
// for a key that does not exist: the master reports the creation of a key after a tracked read of
// it. Such a waiter reads first, and then asks the register, so that a later change is reported.
//
// A key that shares its cell with other keys has an alarm that reads the key in the register after
// each read that finds the cell held ([Watcher.NewKeyAlarm]).
//
// # Only a hint
//
// This package decides nothing. A View only reports when a try is worthwhile; the try itself is a
// request to the masters like any other LOCK. A missing or wrong report costs only time: each Held
// View contains the expiry of the lease, if there is one. If too few masters can be watched, the
// View is Unclear, and the waiter polls.
//
// No change is missed: reading and arming are one step on the master, so the read sees a change, or
// the master reports the change after the read. While a watch is not connected, the state of its
// master is unknown. When it is connected again, it reads all keys with waiters. The proxy sends
// a PING each second on a silent watch, so that it notices a dead connection.
//
// # Change watches
//
// A [ChangeWatch] is for a caller that has read a key and needs to know of the next change. It
// reports whether a majority of the masters is armed: then one of them reports any change on a
// majority of the masters. Its reports are also only hints, and the caller reads the value again.
//
// # Why client tracking
//
// In its default mode client tracking costs a master an entry for each key after a read, until the
// key changes. Keyspace events would have to be enabled (CONFIG SET, a right that proxies need not
// have), and would be created for every key of every database. The mode BCAST compares each written
// key with all prefixes, does not allow two keys of which one is a prefix of the other, and cannot
// remove a prefix.
//
// A read returns the value, not only whether the key exists: a key that was removed by ballot holds
// an empty cell for a while, and can be taken at once.
//
// # Masters are not trusted
//
// The package accepts, within limits, only replies to its requests and invalidations of keys.
// Anything else ends the connection. The package keeps no state for a key without an alarm or a
// change watch.
package watch
