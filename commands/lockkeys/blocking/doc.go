// Package blocking runs the commands that wait on lock keys for an element: BLPOP, BRPOP, BLMOVE,
// BRPOPLPUSH, BZPOPMIN and BZPOPMAX. In transactions and scripts these commands do not wait, and
// package keyspace runs them.
//
// A client is in one queue of this proxy for each of its keys, separate from the clients that wait
// for the key as a lock. When it is the head of a queue and the key changes, it tries its command
// (quorum.Locker.AwaitPop). A try runs the command on one key, as a program. The program takes
// an element by one vote, once, and its reply is the client's reply, even if the timeout has passed
// meanwhile. If too few masters answered and the try had found nothing, then nothing can have been
// taken, and the client waits until enough masters vote again. Otherwise the error says that the
// outcome is unknown.
//
// # Several keys
//
// The client takes from the first key that has an element, in the order named. No vote covers two
// keys, so the keys named before are checked: they must be empty when read after the key to take
// from, and the take requires that key's version to be unchanged. So an element that was put under
// an earlier key before the read is never skipped. An element that is put there during the take may
// be skipped; it stays there for the next client. A move from one key to another is refused, unless
// both have the same tag. Then one vote covers both, and the client waits for the key that it takes
// from.
package blocking
