package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn reads from a connection and writes to it. It holds none of its memory's buffers while it
// waits, so that thousands of idle clients cost little.
type Conn struct {
	conn     net.Conn
	memory   Memory
	activity *Activity

	rawConn syscall.RawConn // nil if the connection is not a plain socket
	// poller reports the end of the stream, with tag; nil if the end is not reported. Join sets it
	// before the first read.
	poller *Poller
	tag    Tag
	ended  atomic.Bool // the stream has ended; any goroutine may use it

	// These fields belong to the reader, for the current read.
	n      int
	err    error
	handle func(n int) bool
	// waitBuf is the small buffer with which the reader of a connection that is not a plain socket
	// waits. unreturnedBytes is the part of waitBuf that was not yet returned. mayHaveMore is set
	// if more bytes may have arrived. All three belong to that reader.
	waitBuf, unreturnedBytes []byte
	mayHaveMore              bool
	// These fields belong to the writer, for the current write.
	unsentBytes []byte
	writeErr    error
	// writeLimit is the longest time that a write may wait for the other end, 0 for no limit.
	// hasDeadline is set while a write deadline enforces that limit.
	writeLimit  time.Duration
	hasDeadline bool
	// These fields hold the methods readOnce, readLoop, writeAll and writeSome, so that a call
	// allocates no memory. The reader sets the first two, and the writer the last two, at their
	// first use.
	readOnceFn, readLoopFn, writeAllFn, writeSomeFn func(fd uintptr) bool
}

// New returns a Conn that reads from conn into memory, and records activity.
func New(conn net.Conn, memory Memory, activity *Activity) *Conn {
	c := &Conn{conn: conn, memory: memory, activity: activity}
	if sys, ok := conn.(syscall.Conn); ok && hasRawCalls {
		c.rawConn, _ = sys.SyscallConn()
	}
	return c
}

// Join makes the poller report the end of the stream. Without a poller, or for a connection that is
// not a plain socket, it does nothing. Join must be called at most once, before the first read.
func (c *Conn) Join(p *Poller, t Tag) {
	if p != nil && c.rawConn != nil && p.add(c.rawConn, t, streamEnd) == nil {
		c.poller, c.tag = p, t
	}
}

// CanPark reports whether the poller can wait for the connection.
func (c *Conn) CanPark() bool { return c.poller != nil }

// Park makes the poller report the next event, once, including bytes that have already arrived. No
// goroutine may be reading.
func (c *Conn) Park() error {
	if c.poller == nil {
		return errors.ErrUnsupported
	}
	return c.poller.change(c.rawConn, c.tag, readable)
}

// Unpark undoes Park: the poller reports only the end of the stream again.
func (c *Conn) Unpark() {
	if c.poller != nil {
		_ = c.poller.change(c.rawConn, c.tag, streamEnd) // cannot fail for a connection in the set
	}
}

// Read reads once. It returns io.EOF at the end.
func (c *Conn) Read() (int, error) {
	if c.rawConn == nil {
		return c.readWaiting()
	}
	if c.readOnceFn == nil {
		c.readOnceFn = c.readOnce
	}
	if err := c.rawConn.Read(c.readOnceFn); err != nil {
		return 0, err
	}
	return c.n, c.err
}

// waitBufSize is the size of the buffer with which a connection that is not a plain socket waits.
const waitBufSize = 1 << 10

// readWaiting implements Read for a connection that is not a plain socket, such as TLS. A read that
// waits on such a connection needs a buffer. So readWaiting waits with a small buffer, and uses the
// memory once bytes have arrived, or may have arrived.
func (c *Conn) readWaiting() (n int, err error) {
	if len(c.unreturnedBytes) == 0 && !c.mayHaveMore {
		c.memory.Release()
		if c.waitBuf == nil {
			c.waitBuf = make([]byte, waitBufSize)
		}
		n, err = c.conn.Read(c.waitBuf)
		c.unreturnedBytes, c.mayHaveMore = c.waitBuf[:n], n == waitBufSize
		if n == 0 {
			return 0, c.recordEvent(err)
		}
		err = nil // the next read returns the error again
	}
	if len(c.unreturnedBytes) > 0 {
		n = copy(c.memory.Buffer(), c.unreturnedBytes)
		c.unreturnedBytes = c.unreturnedBytes[n:]
	} else {
		room := c.memory.Buffer()
		n, err = c.conn.Read(room)
		c.mayHaveMore = n == len(room)
	}
	if n > 0 {
		c.activity.Record()
		return n, err
	}
	return n, c.recordEvent(err)
}

// recordEvent records activity for the end of the stream, but not for a deadline.
func (c *Conn) recordEvent(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.activity.Record()
	}
	return err
}

// readOnce reads if bytes have arrived, and reports whether it is done.
func (c *Conn) readOnce(fd uintptr) bool {
	c.n, c.err = sysRead(fd, c.memory.Buffer())
	switch {
	case c.err == syscall.EAGAIN:
		c.memory.Release()
		return false
	case c.err != nil:
		c.n, c.err = 0, os.NewSyscallError("read", c.err)
	case c.n == 0:
		c.err = io.EOF
	}
	c.activity.Record()
	return true
}

// ForEachRead reads repeatedly, and calls handle for each part, until handle returns false or
// reading fails. If reading fails, ForEachRead returns the error. handle must neither read from the
// connection nor close it.
func (c *Conn) ForEachRead(handle func(n int) bool) error {
	if c.rawConn == nil || c.poller == nil {
		return c.forEachPlainRead(handle)
	}
	if c.readLoopFn == nil {
		c.readLoopFn = c.readLoop
	}
	c.handle, c.err = handle, nil
	defer func() { c.handle = nil }()
	for c.handle != nil && c.err == nil {
		if err := c.rawConn.Read(c.readLoopFn); err != nil {
			return err
		}
	}
	return c.err
}

// readLoop reads and handles bytes, and reports whether it must be called anew.
//
// After a read that did not fill the room, readLoop waits without another system call, which saves
// every second read. Bytes that arrive after the read are another event for Go's poller, which
// keeps the event until the wait. All of this happens within one RawConn.Read, because another call
// would forget the event. If the end of the stream arrives together with bytes, Go's poller reports
// no further event for it; the proxy's own poller does.
func (c *Conn) readLoop(fd uintptr) bool {
	if !c.readOnce(fd) {
		return false
	}
	full := c.n == len(c.memory.Buffer())
	if c.n > 0 && !c.handle(c.n) {
		c.handle = nil
		return true
	}
	if full || c.err != nil || c.ended.Load() {
		return true
	}
	c.memory.Release()
	return false
}

// forEachPlainRead implements ForEachRead for a connection without a poller. It reads again after
// every part, because the end of the stream may have arrived already.
func (c *Conn) forEachPlainRead(handle func(n int) bool) error {
	for {
		n, err := c.Read()
		if n > 0 && !handle(n) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// End closes the reading side, after the other end has ended its stream. It loses no bytes that
// have arrived, and wakes a goroutine that waits for more bytes.
func (c *Conn) End() {
	if closer, ok := c.conn.(interface{ CloseRead() error }); ok && !c.ended.Swap(true) {
		_ = closer.CloseRead()
	}
}

// HasEnded reports whether End was called.
func (c *Conn) HasEnded() bool { return c.ended.Load() }

// EndReads makes reads end after the bytes that have arrived, as if the other end had closed. Over
// TLS, reads end immediately.
func (c *Conn) EndReads() {
	if tlsConn, ok := c.conn.(interface{ NetConn() net.Conn }); ok {
		_ = tlsConn.NetConn().Close()
		return
	}
	c.End()
}

// Write writes all of p. One goroutine may write at a time.
func (c *Conn) Write(p []byte) (int, error) {
	if c.rawConn == nil {
		return c.conn.Write(p)
	}
	if c.writeAllFn == nil {
		c.writeAllFn = c.writeAll
	}
	c.unsentBytes, c.writeErr = p, nil
	err := c.rawConn.Write(c.writeAllFn)
	if err == nil {
		err = c.writeErr
	}
	n := len(p) - len(c.unsentBytes)
	c.unsentBytes = nil
	return n, err
}

// WriteSome writes as much as the system accepts without waiting. To a connection that is not a
// plain socket it writes nothing. One goroutine may write at a time.
func (c *Conn) WriteSome(p []byte) (n int, err error) {
	if c.rawConn == nil {
		return 0, nil
	}
	if c.writeSomeFn == nil {
		c.writeSomeFn = c.writeSome
	}
	c.unsentBytes, c.writeErr = p, nil
	if err = c.rawConn.Write(c.writeSomeFn); err == nil {
		err = c.writeErr
	}
	n = len(p) - len(c.unsentBytes)
	c.unsentBytes = nil
	return n, err
}

// writeSome calls writeAll, and never waits.
func (c *Conn) writeSome(fd uintptr) bool {
	c.writeAll(fd)
	return true
}

// WriteWithin writes like Write, but fails if it waits for the other end for longer than limit. It
// leaves no deadline behind.
func (c *Conn) WriteWithin(limit time.Duration, p []byte) (int, error) {
	if c.rawConn == nil {
		_ = c.conn.SetWriteDeadline(time.Now().Add(limit))
		n, err := c.conn.Write(p)
		_ = c.conn.SetWriteDeadline(time.Time{})
		return n, err
	}
	c.writeLimit = limit
	n, err := c.Write(p)
	if c.writeLimit = 0; c.hasDeadline {
		c.hasDeadline = false
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// setWriteDeadline sets the deadline of a write that has to wait. Most writes need not wait, and
// need no deadline.
func (c *Conn) setWriteDeadline() {
	if c.writeLimit > 0 && !c.hasDeadline {
		c.hasDeadline = true
		_ = c.conn.SetWriteDeadline(time.Now().Add(c.writeLimit))
	}
}

// writeAll writes as much as the system accepts, and reports whether the write is complete or has
// failed.
func (c *Conn) writeAll(fd uintptr) bool {
	for len(c.unsentBytes) > 0 {
		n, err := sysWrite(fd, c.unsentBytes)
		switch {
		case err == syscall.EAGAIN:
			c.setWriteDeadline()
			return false
		case err != nil:
			c.writeErr = os.NewSyscallError("write", err)
			return true
		}
		c.unsentBytes = c.unsentBytes[n:]
	}
	return true
}

// FreeMemory drops the stored method values, which their next use allocates again.
func (c *Conn) FreeMemory() {
	c.readOnceFn, c.readLoopFn, c.writeAllFn, c.writeSomeFn = nil, nil, nil, nil
}

// CloseWrite closes the writing side, and reports whether the connection supports that.
func (c *Conn) CloseWrite() bool {
	closer, ok := c.conn.(interface{ CloseWrite() error })
	if ok {
		_ = closer.CloseWrite()
	}
	return ok
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() string { return c.conn.LocalAddr().String() }

// Close closes the connection. Any goroutine may call Close and the following methods.
func (c *Conn) Close() error { return c.conn.Close() }

// SetReadDeadline sets the connection's read deadline, as in net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// SetWriteDeadline sets the connection's write deadline, as in net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }
