package proxy

import (
	"io"
	"net"
	"testing"
	"time"

	"redlock-proxy/proxy/netconn"
)

// TestEarlierDeadline checks that the deadline of an earlier write does not end a later write. A
// client that tracks keys gets invalidations with a deadline; messages may follow much later.
func TestEarlierDeadline(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	socket, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	pipe, reader := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, reader) }() // ends when the pipe is closed
	for name, conn := range map[string]net.Conn{"a socket": socket, "no socket, as with TLS": &deadlineConn{Conn: pipe}} {
		var w clientWriter
		w.init(conn, netconn.New(conn, &netconn.PooledBuffer{}, &netconn.Activity{}), &unreadReplies{}, func() {})
		w.mu.Lock()
		w.limitWrite(time.Nanosecond)
		if _, err := w.writeWithin(time.Minute, []byte("message")); err != nil {
			t.Errorf("%s: a message: %v", name, err)
		}
		if d, ok := conn.(*deadlineConn); ok && !d.deadline.IsZero() {
			t.Errorf("%s: the message leaves a deadline", name)
		}
		w.mu.Unlock()
		_ = conn.Close()
	}
}

// deadlineConn records the last write deadline.
type deadlineConn struct {
	net.Conn
	deadline time.Time
}

func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}
