package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// timeout limits the wait for events that must happen. A test that passes never reaches it.
const timeout = time.Minute

// disconnects lists the ways in which the other end can disconnect.
var disconnects = map[string]func(c *net.TCPConn) error{
	"close":     func(c *net.TCPConn) error { return c.Close() },
	"halfclose": func(c *net.TCPConn) error { return c.CloseWrite() },
	"reset": func(c *net.TCPConn) error {
		_ = c.SetLinger(0)
		return c.Close()
	},
}

// pollEvent is an event of a poller: the connection, and whether it has ended.
type pollEvent struct {
	tag   Tag
	ended bool
}

// polledConn holds a poller and both ends of a connection. localConn is in the poller's set.
type polledConn struct {
	*testing.T
	poller     *Poller
	localConn  *net.TCPConn
	remoteConn *net.TCPConn
	rawConn    syscall.RawConn
}

func newPolledConn(t *testing.T, tag Tag, event interest) polledConn {
	t.Helper()
	near, far := tcpConnPair(t)
	w := polledConn{T: t, poller: newTestPoller(t), localConn: near, remoteConn: far}
	var err error
	if w.rawConn, err = near.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if err := w.poller.add(w.rawConn, tag, event); err != nil {
		t.Fatal(err)
	}
	return w
}

func newTestPoller(t *testing.T) *Poller {
	t.Helper()
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// tcpConnPair returns both ends of a TCP connection.
func tcpConnPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return accepted.(*net.TCPConn), dialled.(*net.TCPConn)
}

// expect waits for exactly these events; without arguments it expects no event.
func (w polledConn) expect(want ...pollEvent) {
	w.Helper()
	var got []pollEvent
	limit := time.Now().Add(timeout)
	if len(want) == 0 {
		limit = time.Now() // earlier events are reported immediately
	}
	for len(got) < max(1, len(want)) {
		if err := w.poller.Wait(limit, func(t Tag, ended bool) { got = append(got, pollEvent{t, ended}) }); err != nil {
			if len(want) > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				w.Errorf("wait: %v", err)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("told %v, want %v", got, want)
	}
}

func (w polledConn) send() {
	w.Helper()
	if _, err := w.remoteConn.Write([]byte("x")); err != nil {
		w.Fatal(err)
	}
}

// TestPollerReportsTheEnd checks that the end is reported separately from the bytes before it, and
// once.
func TestPollerReportsTheEnd(t *testing.T) {
	tag := TagOf(1<<40+7, 65535)
	for way, disconnect := range disconnects {
		t.Run(way, func(t *testing.T) {
			w := newPolledConn(t, tag, streamEnd)
			w.send()
			w.expect()
			if err := disconnect(w.remoteConn); err != nil {
				t.Fatal(err)
			}
			w.expect(pollEvent{tag, true})
			w.expect()
			if err := w.poller.change(w.rawConn, tag, streamEnd); err != nil {
				t.Fatal(err)
			}
			w.expect(pollEvent{tag, true}) // after change, the poller reports the end again
		})
	}
	if tag.Client() != 1<<40+7 || tag.ConnID() != 65535 {
		t.Errorf("the tag is of client %d, connection %d", tag.Client(), tag.ConnID())
	}
}

// TestPollerReportsReadable checks that an event is reported once, even if it is older than the
// call of change.
func TestPollerReportsReadable(t *testing.T) {
	w := newPolledConn(t, 5, streamEnd)
	w.send()
	w.expect()
	for range 3 {
		if err := w.poller.change(w.rawConn, 5, readable); err != nil {
			t.Fatal(err)
		}
		w.expect(pollEvent{5, false})
		w.send()
		w.expect()
	}
	w.remoteConn.Close()
	if err := w.poller.change(w.rawConn, 5, readable); err != nil {
		t.Fatal(err)
	}
	w.expect(pollEvent{5, true})
}

// TestPollerReportsToLateCallers checks that a caller whose deadline has always passed still gets
// the events.
func TestPollerReportsToLateCallers(t *testing.T) {
	w := newPolledConn(t, 5, readable)
	w.send()
	var got []pollEvent
	err := w.poller.Wait(time.Now().Add(-time.Second), func(t Tag,
		ended bool) {
		got = append(got, pollEvent{t, ended})
	})
	if want := []pollEvent{{5, false}}; !slices.Equal(got, want) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("told %v, %v", got, err)
	}
}

func TestPollerWakesOnClose(t *testing.T) {
	w := newPolledConn(t, 5, readable)
	ended := make(chan error)
	go func() { ended <- w.poller.Wait(time.Time{}, func(Tag, bool) {}) }()
	if err := w.poller.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("ended by %v", err)
		}
	case <-time.After(timeout):
		t.Fatal("it waits on")
	}
}

// pollerConnPair returns a Conn in a poller, and the other end.
func pollerConnPair(t *testing.T) (c *Conn, far *net.TCPConn, p *Poller, memory *PooledBuffer) {
	t.Helper()
	near, far := tcpConnPair(t)
	p, memory = newTestPoller(t), &PooledBuffer{}
	c = New(near, memory, &Activity{})
	c.Join(p, TagOf(7, 0))
	return c, far, p, memory
}

// TestForEachRead checks that ForEachRead delivers all bytes, even if the end arrives with the last
// bytes. A connection without unread bytes has no buffer.
func TestForEachRead(t *testing.T) {
	c, far, p, memory := pollerConnPair(t)
	got, ended := "", make(chan error, 1)
	part := make(chan string)
	go func() {
		ended <- c.ForEachRead(func(n int) bool {
			part <- string(memory.Buffer()[:n])
			return true
		})
	}()
	go func() { _ = p.Wait(time.Now().Add(timeout), func(Tag, bool) { c.End() }) }()
	for _, text := range []string{"a", "b", "c"} {
		_, _ = far.Write([]byte(text))
		got += <-part
	}
	_ = far.Close()
	if err := <-ended; err != io.EOF || got != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if memory.Release(); memory.buf != nil {
		t.Error("the buffer is kept")
	}
}

// TestParkAndUnpark checks that a parked connection is reported once, also for earlier bytes. After
// Unpark it can be read.
func TestParkAndUnpark(t *testing.T) {
	c, far, p, memory := pollerConnPair(t)
	if !c.CanPark() {
		t.Fatal("it cannot be parked")
	}
	_, _ = far.Write([]byte("x"))
	if err := c.Park(); err != nil {
		t.Fatal(err)
	}
	var tag Tag
	if err := p.Wait(time.Now().Add(timeout), func(t Tag, _ bool) { tag = t }); err != nil || tag.Client() != 7 {
		t.Fatalf("told of %d, %v", tag.Client(), err)
	}
	c.Unpark()
	if n, err := c.Read(); n != 1 || err != nil || memory.Buffer()[0] != 'x' {
		t.Errorf("%d bytes, %v", n, err)
	}
	if n, err := c.Write([]byte("answer")); n != 6 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if New(nil, memory, nil).Park() == nil {
		t.Error("a connection without a poller was parked")
	}
}
