// Package wake tells those who wait for a lock when it may be free, so that nobody has to ask for
// it again and again: while nothing changes, the masters are sent nothing.
//
// A [Waker] has a watch of each master and database in which somebody waits: a connection of its
// own on which the master tells of changes (HELLO 3, CLIENT TRACKING ON). Whoever waits sets an
// [Alarm] for the key. It looks at the key on all masters (PTTL, GETRANGE of the head of its cell),
// which arms it: the next change of the key, whoever makes it, by a command, by expiry, eviction or
// FLUSHALL, is told once. What the looks and the changes told since come to is a [View].
//
// Who waits until something is put under a key sets an alarm for any change ([Waker.ForChange]),
// also of a key that is absent: a tracked read of a key that is not there is told of its coming.
// Such a one looks first and asks the register then, so that what the register did not have yet is
// told.
//
// A key that shares its cell with others has an alarm that reads it after each look which finds the
// cell held ([Waker.Within]).
//
// # A hint, no more
//
// Nothing is decided here. A View only says when a try is worthwhile; the try itself asks the
// masters as any other LOCK does. What is never told, or told wrongly, costs time: behind each Held
// stands the end of the lease, and where too few masters can be watched the View is Unclear, and
// one who waits polls.
//
// No change is missed: looking and arming are one step on the master, so a change is either seen by
// the look or told after it. While a watch is not connected its master counts as unknown; when it
// is connected again, all keys that are waited for are looked at there. A watch that is silent is
// asked for a sign of life each second, so that one whose connection has died is noticed.
//
// # Marks
//
// A [Mark] is for one who has read a key and is to hear of the next change. It says whether a
// majority of the masters is armed: then whatever a majority of them changes is told by one of
// these. What it tells is a hint, too, and the value is read again.
//
// # Why client tracking
//
// In its default mode it costs a master only what is waited for: an entry for each key that was
// looked at, until it changes. Keyspace events would have to be switched on (CONFIG SET, a right
// that proxies need not have) and be made for every key of every database. The mode BCAST compares
// each written key with all prefixes, does not take two keys of which one begins with the other,
// and cannot let go of one.
//
// A look tells what stands there, and not only that there is something: a key that was removed by
// ballot holds "nothing is there" for a while, and can be had at once.
//
// # What a master says is not believed
//
// Only what was asked for is taken, within bounds, and of pushes only invalidations of keys;
// anything else ends the connection. Nothing is kept of a key that nobody waits for.
package wake
