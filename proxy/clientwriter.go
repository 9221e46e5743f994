package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"redlock-proxy/proxy/netconn"
)

const (
	// writeTimeout is the longest time that a client of a lock server may leave replies or messages
	// unread.
	writeTimeout = time.Minute
	// maxPending limits the bytes of replies that the proxy collects before it writes them, and the
	// memory that a client keeps for further replies.
	maxPending = 16 << 10
)

// pastDeadline makes reads and writes fail immediately.
var pastDeadline = time.Unix(1, 0)

// errClientDisconnected reports that the client has closed its connection, or that writes to it
// fail.
var errClientDisconnected = errors.New("the client disconnected")

// clientWriter writes to a client for several goroutines, one at a time. mu guards all state that
// decides which bytes may be written next. A writing goroutine has the turn, but does not hold mu:
// a client that does not read delays only its own writers. No other type in this package writes to
// an admitted client.
type clientWriter struct {
	rawConn       net.Conn
	conn          *netconn.Conn
	unreadReplies *unreadReplies // of all clients

	mu           sync.Mutex
	changed      sync.Cond // signals changes of the fields that mu guards, while waiters > 0
	waiters      int
	writing      bool // a goroutine has the turn
	hasDeadline  bool // a write deadline is set
	unreadClient unreadClient
}

// init sets the fields; call it only once. disconnect must end the connection without waiting.
func (l *clientWriter) init(conn net.Conn, w *netconn.Conn, unread *unreadReplies, disconnect func()) {
	l.rawConn, l.conn, l.unreadReplies, l.unreadClient.disconnect = conn, w, unread, disconnect
	l.changed.L = &l.mu
}

// wait waits for a condition on the fields that mu guards, or until ctx ends. The caller holds mu.
func (l *clientWriter) wait(ctx context.Context, condition func() bool) error {
	if condition() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer stop()
	l.waiters++
	defer func() { l.waiters-- }()
	for !condition() && ctx.Err() == nil {
		l.changed.Wait()
	}
	if condition() {
		return nil
	}
	return context.Cause(ctx)
}

// waitTurn waits until no goroutine writes. The caller holds mu.
func (l *clientWriter) waitTurn() {
	l.waiters++
	for l.writing {
		l.changed.Wait()
	}
	l.waiters--
}

// signal wakes waiting goroutines. The caller holds mu.
func (l *clientWriter) signal() {
	if l.waiters > 0 {
		l.changed.Broadcast()
	}
}

// write writes all of p, and returns the number of bytes that the client's socket accepted. The
// caller holds mu and has the turn; write unlocks mu while it writes.
func (l *clientWriter) write(p []byte) (int, error) { return l.writeWithin(0, p) }

// writeWithin writes like write, with a time limit; 0 keeps the limit of limitWrite.
func (l *clientWriter) writeWithin(limit time.Duration, p []byte) (n int, err error) {
	if limit > 0 {
		l.limitWrite(0) // an earlier write's deadline may have passed
	}
	l.writing = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.writing = false
		l.signal()
	}()
	if limit > 0 {
		return l.conn.WriteWithin(limit, p)
	}
	return l.conn.Write(p)
}

// writeReplies writes the proxy's own replies like writeWithin. Bytes that the client's socket does
// not accept immediately count as unread until they are written. If the memory of p is larger than
// the memory that each client keeps, that memory counts instead.
func (l *clientWriter) writeReplies(limit time.Duration, p []byte) (n int, err error) {
	n, err = l.conn.WriteSome(p)
	if err != nil || n == len(p) {
		return n, err
	}
	rest := p[n:]
	unread := len(rest)
	if cap(p) > maxPending {
		unread = cap(p)
	}
	l.unreadReplies.add(&l.unreadClient, unread)
	written, err := l.writeWithin(limit, rest)
	l.unreadReplies.remove(&l.unreadClient, unread)
	return n + written, err
}

// yield unlocks mu briefly for goroutines that wait for it, and keeps the turn. The caller holds
// mu.
func (l *clientWriter) yield() {
	l.writing = true
	l.mu.Unlock()
	l.mu.Lock()
	l.writing = false
}

// limitWrite limits the time that the client may take for the next write; 0 means no limit. The
// caller holds mu.
func (l *clientWriter) limitWrite(limit time.Duration) {
	if limit > 0 {
		_ = l.rawConn.SetWriteDeadline(time.Now().Add(limit))
	} else if l.hasDeadline {
		_ = l.rawConn.SetWriteDeadline(time.Time{})
	}
	l.hasDeadline = limit > 0
}

// releaseMemory frees memory that can be allocated again, unless a goroutine writes now.
func (l *clientWriter) releaseMemory() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writing {
		l.conn.FreeMemory()
	}
}
