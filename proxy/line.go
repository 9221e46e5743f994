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
	// writeTimeout is how long a client may leave its replies unread.
	writeTimeout = time.Minute
	// maxPending limits the bytes of replies that are written together.
	maxPending = 16 << 10
)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// errClientLeft is the cause of a context whose client closed its connection.
var errClientLeft = errors.New("the client left")

// line writes to a client, on behalf of several goroutines, one at a time. mu guards all state that
// decides which bytes may be written next. A writing goroutine has the turn, but does not hold mu:
// a client that does not read delays only the goroutines that write to it. Nothing else in this
// package writes to a client.
type line struct {
	conn   net.Conn
	wire   *netconn.Conn
	unread *unread // of all clients

	mu      sync.Mutex
	changed sync.Cond // signals changes of the fields that mu guards, while waiting > 0
	waiting int
	writing bool // a goroutine has the turn
	limited bool // a write deadline is set
	waits   unreadClient
}

// init sets the fields; it is called once. cut ends the connection, and must not wait.
func (l *line) init(conn net.Conn, w *netconn.Conn, all *unread, cut func()) {
	l.conn, l.wire, l.unread, l.waits.cut = conn, w, all, cut
	l.changed.L = &l.mu
}

// wait waits for a condition on the fields that mu guards, or until ctx ends. It is called with mu
// held.
func (l *line) wait(ctx context.Context, until func() bool) error {
	if until() {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer stop()
	l.waiting++
	defer func() { l.waiting-- }()
	for !until() && ctx.Err() == nil {
		l.changed.Wait()
	}
	if until() {
		return nil
	}
	return context.Cause(ctx)
}

// waitTurn waits until no goroutine writes. It is called with mu held.
func (l *line) waitTurn() {
	l.waiting++
	for l.writing {
		l.changed.Wait()
	}
	l.waiting--
}

// signal wakes waiting goroutines. It is called with mu held.
func (l *line) signal() {
	if l.waiting > 0 {
		l.changed.Broadcast()
	}
}

// write writes all of p, and returns how many bytes the client's socket took. The caller holds mu
// and has the turn; write unlocks mu while it writes.
func (l *line) write(p []byte) (int, error) { return l.writeWithin(0, p) }

// writeWithin is write with a time limit; 0 means no limit. It clears the write deadline.
func (l *line) writeWithin(limit time.Duration, p []byte) (n int, err error) {
	l.writing = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.writing = false
		l.signal()
	}()
	if limit > 0 {
		return l.wire.WriteWithin(limit, p)
	}
	return l.wire.Write(p)
}

// writeReplies is writeWithin for the proxy's own replies. They count as unread until the client
// takes them.
func (l *line) writeReplies(limit time.Duration, p []byte) (n int, err error) {
	n, err = l.wire.WriteSome(p)
	if err != nil || n == len(p) {
		return n, err
	}
	rest := p[n:]
	l.unread.add(&l.waits, len(rest))
	more, err := l.writeWithin(limit, rest)
	l.unread.done(&l.waits, len(rest))
	return n + more, err
}

// yield unlocks mu briefly for goroutines that wait for it, and keeps the turn. It is called with
// mu held.
func (l *line) yield() {
	l.writing = true
	l.mu.Unlock()
	l.mu.Lock()
	l.writing = false
}

// limitWrite limits the time that the client may take for the next write; 0 means no limit. It is
// called with mu held.
func (l *line) limitWrite(limit time.Duration) {
	if limit > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(limit))
	} else if l.limited {
		_ = l.conn.SetWriteDeadline(time.Time{})
	}
	l.limited = limit > 0
}

// releaseMemory frees memory that can be allocated again, unless a goroutine writes now.
func (l *line) releaseMemory() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writing {
		l.wire.Forget()
	}
}
