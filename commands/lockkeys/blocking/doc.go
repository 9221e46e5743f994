// Package blocking runs the commands that wait on lock keys for an element: BLPOP, BRPOP, BLMOVE,
// BRPOPLPUSH, BZPOPMIN and BZPOPMAX. In transactions and scripts these commands do not wait, and
// package keyspace runs them.
//
// A client waits in one queue of this proxy for each key of its command. Clients that wait for the
// key as a lock have a separate queue. When the client is the head of a queue and the key changes,
// the proxy tries the command (quorum.Locker.AwaitPop). A try runs the command on one key, as a
// program. The program takes an element by one vote, at most once. The client gets the program's
// reply, even if the timeout has passed meanwhile. If too few masters answered and the try found no
// element, the try has taken nothing, and the client waits until enough masters vote again. If too
// few masters answered after the try had found an element, the client gets an error: the outcome is
// unknown.
//
// # Several keys
//
// The client takes an element from the first key that has one, in the order of the command. No vote
// covers two keys. So after the proxy has found the element, it reads the earlier keys again. They
// must be empty, and the take requires that the version of the element's key is unchanged. The
// client never skips an element that an earlier key got before this second read. The client may
// skip an element that an earlier key gets during the take. The next client can take that element.
// The proxy refuses a move from one key to another, unless both have the same tag. Then one vote
// covers both keys, and the client waits for the source.
package blocking
