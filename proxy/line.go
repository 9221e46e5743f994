package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"redlock-proxy/proxy/wire"
)

const (
	// writeTimeout is how long a client may leave its replies unread.
	writeTimeout = time.Minute
	// maxPending is how much is written together.
	maxPending = 16 << 10
)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// errClientLeft is the cause of a context whose client closed its connection.
var errClientLeft = errors.New("the client left")

// line is the way to a client, for all who write to it, one at a time, and mu is of all that says
// what may be written next. Who writes has the turn, and not mu: a client that does not read keeps
// nobody waiting but those who write to it. Nothing else in this package writes to a client.
type line struct {
	conn   net.Conn
	wire   *wire.Conn
	unread *unread // of all clients

	mu      sync.Mutex
	changed sync.Cond // something that mu guards, while waiting > 0
	waiting int
	writing bool // somebody has the turn
	bounded bool // a write has a deadline
	waits   waiting
}

// init is called once. cut ends the connection, and does not wait.
func (l *line) init(conn net.Conn, w *wire.Conn, all *unread, cut func()) {
	l.conn, l.wire, l.unread, l.waits.cut = conn, w, all, cut
	l.changed.L = &l.mu
}

// wait waits for a condition on what mu guards. It is called with mu held.
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

// turn waits until nobody writes. It is called with mu held.
func (l *line) turn() {
	l.waiting++
	for l.writing {
		l.changed.Wait()
	}
	l.waiting--
}

// signal wakes what waits. It is called with mu held.
func (l *line) signal() {
	if l.waiting > 0 {
		l.changed.Broadcast()
	}
}

// write writes all of p, and tells how many bytes the client's socket took: nobody may be writing.
// It is called with mu held, and lets it go while it writes.
func (l *line) write(p []byte) (int, error) { return l.writeWithin(0, p) }

// writeWithin is write in bounded time, unless the limit is 0. It ends a bound.
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

// writeReplies is writeWithin of replies of the proxy's own, which count as unread as long as the
// client does not take them.
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

// yield lets mu go for those who wait for it, and keeps the turn. It is called with mu held.
func (l *line) yield() {
	l.writing = true
	l.mu.Unlock()
	l.mu.Lock()
	l.writing = false
}

// bound limits the time that the client may take for the next write, 0: it does not. It is called
// with mu held.
func (l *line) bound(limit time.Duration) {
	if limit > 0 {
		_ = l.conn.SetWriteDeadline(time.Now().Add(limit))
	} else if l.bounded {
		_ = l.conn.SetWriteDeadline(time.Time{})
	}
	l.bounded = limit > 0
}

// forget lets go of what is made again for the next write, if nobody writes now.
func (l *line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.writing {
		l.wire.Forget()
	}
}
