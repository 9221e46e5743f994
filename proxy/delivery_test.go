package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// failingListener accepts connections whose writes fail once broken is closed.
type failingListener struct {
	net.Listener
	broken chan struct{}
}

func (l failingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return failingConn{conn, l.broken}, err
}

type failingConn struct {
	net.Conn
	broken chan struct{}
}

func (c failingConn) Write(p []byte) (int, error) {
	select {
	case <-c.broken:
		return 0, io.ErrClosedPipe
	default:
		return c.Conn.Write(p)
	}
}

func TestGrantThatCannotBeWrittenIsReleased(t *testing.T) {
	broken := make(chan struct{})
	locks := &scriptedLocks{}
	b := startTestServer(t,
		serverOptions{locks: locks, listen: func(inner net.Listener) net.Listener {
			return failingListener{inner, broken}
		}})
	p := b.connect()
	p.check(array("LOCK", "delivered", "t", "PX", "5000"), ":5000\r\n")
	close(broken)
	p.send(array("LOCK", "a", "t", "PX", "5000") + array("LOCK", "b", "u", "PX", "5000", "BLOCK", "0"))
	p.expectClosed()
	b.waitClients(0)
	if got := fmt.Sprint(locks.releasedLocks()); got != "[a=t]" && got != "[a=t b=u]" {
		t.Errorf("released %v", got)
	}
}

// meteredListener measures the largest write to any client.
type meteredListener struct {
	net.Listener
	maxWriteSize *atomic.Int64
}

func (l meteredListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return meteredConn{conn, l.maxWriteSize}, err
}

type meteredConn struct {
	net.Conn
	largest *atomic.Int64
}

func (c meteredConn) Write(p []byte) (int, error) {
	c.largest.Store(max(c.largest.Load(), int64(len(p))))
	return c.Conn.Write(p)
}

// TestRepliesDoNotPileUp checks that the proxy writes long replies to short requests early, and
// does not collect them.
func TestRepliesDoNotPileUp(t *testing.T) {
	for request, longest := range map[string]int{"x\n": 200, "PING\n": 10, "COMMAND DOCS\n": 16 << 10} {
		var maxWriteSize atomic.Int64
		b := startTestServer(t, serverOptions{locks: &scriptedLocks{},
			listen: func(inner net.Listener) net.Listener { return meteredListener{inner, &maxWriteSize} }})
		p := b.connect()
		go func() { _, _ = io.WriteString(p.conn, strings.Repeat(request, 20_000/len(request))+"QUIT\n") }()
		p.readAll()
		if n := maxWriteSize.Load(); n > int64(maxPending+longest) {
			t.Errorf("%q: %d bytes of replies were written at once", request, n)
		}
	}
}
