// Package blocking carries out the commands that wait on lock keys until something is put there:
// BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BZPOPMIN and BZPOPMAX. Where they do not wait, in transactions
// and scripts, package keyspace does it all.
//
// A client stands in a queue of this proxy for each of its keys, apart from those who wait for the
// key as a lock, and tries when it is the head of one and something has changed
// (quorum.Locker.AwaitArrival). A try is the command itself on one key, as a program: what it takes
// it takes by one vote, once, and what it is told of that is the reply, whatever time is over
// meanwhile. Where too few masters answered and nothing was found, nothing can have been taken, and
// the client waits until they vote again; else an error may be no more than that it is not known.
//
// # Several keys
//
// The first key that has something is taken from, in the order named. No vote is about two keys, so
// that those named before are empty is looked at: once more after it was seen what is to be taken,
// and only that very state of the other key is changed. So what was put under an earlier key before
// that is never passed by; what is put there at the same moment may be. It is still there, then,
// for the next one. A move from one key to another is refused, unless both have a tag in common:
// then one vote is about both, and the client waits for the key that it takes from.
package blocking
