// Package netconn provides connections that cost almost nothing while they are idle.
//
// A [Conn] holds no buffer while it waits for bytes: it takes a buffer when there is something to
// read. Only a connection that is not a plain socket, such as TLS, waits with a small buffer. It
// makes few system calls: after a read that did not fill the buffer, it does not read again. The
// system calls never block, so they bypass Go's scheduler.
//
// A [Poller] is the proxy's own epoll set. It contains the same sockets as Go's set. It reports the
// end of a stream separately from bytes, and waits for parked connections, for which no goroutine
// waits. On systems without epoll there is no poller, and no connection is parked.
//
// A [Conn] belongs to two goroutines: one reads from it, and one writes to it. The comments of its
// methods state further conditions.
package netconn
