// Package netconn has connections that cost almost nothing while they are idle.
//
// A [Conn] needs no memory while it waits for bytes: it takes a buffer when there is something to
// read. It makes few system calls: after a read that did not fill its buffer it does not read
// again. These calls never block, so Go's scheduler is not notified of them.
//
// A [Poller] is the proxy's own epoll set. It contains the same sockets as Go's set. It reports the
// end of a stream separately from bytes, and waits for parked connections, for which no goroutine
// waits. On systems without epoll there is no poller, and nothing is parked.
//
// A [Conn] belongs to the goroutine that reads from it and to the one that writes to it. Its
// methods document further conditions.
package netconn
