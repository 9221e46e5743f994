// Package wire is for connections that cost next to nothing while nothing happens on them.
//
// A [Conn] needs no memory while it waits for bytes: it asks for a buffer when there is
// something to read. Its system calls are few: what a read did not fill is not followed by
// another one that would find nothing. And since these calls never block, Go's scheduler is
// not told of them.
//
// A [Poller] is an epoll set of the proxy's own that holds the sockets beside Go's. It tells of
// the end of a stream apart from bytes, and waits for connections that are parked: for these
// no goroutine waits. On systems without epoll there is none, and nothing is parked.
//
// A [Conn] belongs to the goroutine that reads from it and to the one that writes to it; what
// its methods need beyond that they say.
package wire
