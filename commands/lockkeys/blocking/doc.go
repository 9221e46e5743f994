// Package blocking runs the commands that wait on lock keys for an element: BLPOP, BRPOP, BLMOVE,
// BRPOPLPUSH, BZPOPMIN and BZPOPMAX. In transactions and scripts these commands do not wait, and
// package keyspace runs them.
//
// A client waits in one queue of this proxy for each of its keys. Clients that wait for the key as
// a lock have a separate queue. When the client is the head of a queue and the key changes, it
// tries its command (quorum.Locker.AwaitPop). A try runs the command on one key, as a program. The
// program takes an element by one vote, once, and its reply is the client's reply, even if the
// timeout has passed meanwhile. If too few masters answered and the try had found nothing, it
// cannot have taken anything, and the client waits until enough masters vote again. If it had found
// an element, the client gets the error that the outcome is unknown.
//
// # Several keys
//
// The client takes an element from the first key, in the order named, that has one. No vote covers
// two keys. So the keys named before it are read after it, and must be empty, and the take requires
// its version to be unchanged. An element that was put under an earlier key before this read is
// never skipped. An element that is put under an earlier key during the take may be skipped, and is
// left for the next client. A move from one key to another is refused, unless both have the same
// tag. Then one vote covers both keys, and the client waits for the source.
package blocking
