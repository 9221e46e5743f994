package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn reads from a connection, and needs no memory while it waits for something
// to read: with it thousands of idle clients cost no buffers. It writes, too.
type Conn struct {
	conn     net.Conn
	memory   Memory
	activity *Activity

	raw syscall.RawConn // nil where the connection is not a plain socket
	// poller will tell of the end of the stream, by the tag; nil: nobody will. Set before the
	// first read.
	poller *Poller
	tag    Tag
	ended  atomic.Bool // it has told; any goroutine

	// Of the read that is going on: the reader's.
	n      int
	err    error
	handle func(n int) bool
	// Where the connection is no plain socket, the reader's: what it waits with, what of that has
	// come, and whether more is likely to be there.
	first, came []byte
	more        bool
	// Of the write that is going on: the writer's.
	unsent []byte
	broken error
	// limit is how long it may wait for the other end, 0 for any time; limited is set while a
	// deadline says so.
	limit   time.Duration
	limited bool
	// The methods by these names, made when first used: put and some by the writer, the others by
	// the reader.
	once, flow, put, some func(fd uintptr) bool
}

// New reads from a connection into a memory. What happens is told to activity.
func New(conn net.Conn, memory Memory, activity *Activity) *Conn {
	c := &Conn{conn: conn, memory: memory, activity: activity}
	if sys, ok := conn.(syscall.Conn); ok && canAttempt {
		c.raw, _ = sys.SyscallConn()
	}
	return c
}

// Join has the poller tell of the end of the stream, if there is a poller and it can. It is
// called once, before anything is read.
func (c *Conn) Join(p *Poller, t Tag) {
	if p != nil && c.raw != nil && p.add(c.raw, t, theEnd) == nil {
		c.poller, c.tag = p, t
	}
}

// CanPark reports whether the poller could wait for the connection.
func (c *Conn) CanPark() bool { return c.poller != nil }

// Park has the poller tell of anything, once: of what has arrived before, too. Nobody may be
// reading.
func (c *Conn) Park() error {
	if c.poller == nil {
		return errors.ErrUnsupported
	}
	return c.poller.change(c.raw, c.tag, anything)
}

// Wake has the poller tell of the end of the stream alone, as at the beginning.
func (c *Conn) Wake() {
	if c.poller != nil {
		_ = c.poller.change(c.raw, c.tag, theEnd) // of a connection in the set: it cannot fail
	}
}

// Read reads once. It returns io.EOF at the end.
func (c *Conn) Read() (int, error) {
	if c.raw == nil {
		return c.readWaiting()
	}
	if c.once == nil {
		c.once = c.readOnce
	}
	if err := c.raw.Read(c.once); err != nil {
		return 0, err
	}
	return c.n, c.err
}

// firstSize is how much is read from a connection that is no plain socket before it needs the
// memory.
const firstSize = 1 << 10

// readWaiting is Read for what is no plain socket, such as TLS: there a read that waits needs room
// to read into. So it waits with little room, and uses the memory when something has come, or
// where more is likely to be there.
func (c *Conn) readWaiting() (n int, err error) {
	if len(c.came) == 0 && !c.more {
		c.memory.Rest()
		if c.first == nil {
			c.first = make([]byte, firstSize)
		}
		n, err = c.conn.Read(c.first)
		c.came, c.more = c.first[:n], n == firstSize
		if n == 0 {
			return 0, c.noted(err)
		}
		err = nil // it will come again
	}
	if len(c.came) > 0 {
		n = copy(c.memory.Room(), c.came)
		c.came = c.came[n:]
	} else {
		room := c.memory.Room()
		n, err = c.conn.Read(room)
		c.more = n == len(room)
	}
	if n > 0 {
		c.activity.Happened()
		return n, err
	}
	return n, c.noted(err)
}

// noted has an end count as something that happened, and a deadline not.
func (c *Conn) noted(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.activity.Happened()
	}
	return err
}

// readOnce reads if there is something, and reports whether that is an answer.
func (c *Conn) readOnce(fd uintptr) bool {
	c.n, c.err = sysRead(fd, c.memory.Room())
	switch {
	case c.err == syscall.EAGAIN:
		c.memory.Rest()
		return false
	case c.err != nil:
		c.n, c.err = 0, os.NewSyscallError("read", c.err)
	case c.n == 0:
		c.err = io.EOF
	}
	c.activity.Happened()
	return true
}

// Pump reads again and again, and has each part handled, until handle says that
// it wants no more or reading fails; then it returns why. handle must neither read
// from the connection nor close it.
func (c *Conn) Pump(handle func(n int) bool) error {
	if c.raw == nil || c.poller == nil {
		return c.pumpAsking(handle)
	}
	if c.flow == nil {
		c.flow = c.readOn
	}
	c.handle, c.err = handle, nil
	defer func() { c.handle = nil }()
	for c.handle != nil && c.err == nil {
		if err := c.raw.Read(c.flow); err != nil {
			return err
		}
	}
	return c.err
}

// readOn reads and handles what comes, and reports whether it must be called anew.
//
// After a part that did not fill its room it waits without asking the system once
// more, which saves every second read. What arrives after the read is an event of
// its own for Go's poller, which keeps it until the wait; that is why all of this is
// one RawConn.Read, for the next one would forget it. An end of the stream that
// arrived with the bytes is no further event there, but is told by the proxy's own
// poller.
func (c *Conn) readOn(fd uintptr) bool {
	if !c.readOnce(fd) {
		return false
	}
	full := c.n == len(c.memory.Room())
	if c.n > 0 && !c.handle(c.n) {
		c.handle = nil
		return true
	}
	if full || c.err != nil || c.ended.Load() {
		return true
	}
	c.memory.Rest()
	return false
}

// pumpAsking is Pump where nobody tells of the end of the stream: it asks the
// system after every part, for the end may stand there already.
func (c *Conn) pumpAsking(handle func(n int) bool) error {
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

// End is told that the other end sends no more. Closing this direction, too, loses
// nothing that has arrived, and wakes the goroutine that waits for more.
func (c *Conn) End() {
	if half, ok := c.conn.(interface{ CloseRead() error }); ok && !c.ended.Swap(true) {
		_ = half.CloseRead()
	}
}

// HasEnded reports whether End was told.
func (c *Conn) HasEnded() bool { return c.ended.Load() }

// Abandon has reads end with what has arrived, as if the other end had closed; over TLS at once.
func (c *Conn) Abandon() {
	if over, ok := c.conn.(interface{ NetConn() net.Conn }); ok {
		_ = over.NetConn().Close()
		return
	}
	c.End()
}

// Write writes all of p. One goroutine may write at a time.
func (c *Conn) Write(p []byte) (int, error) {
	if c.raw == nil {
		return c.conn.Write(p)
	}
	if c.put == nil {
		c.put = c.writeOn
	}
	c.unsent, c.broken = p, nil
	err := c.raw.Write(c.put)
	if err == nil {
		err = c.broken
	}
	n := len(p) - len(c.unsent)
	c.unsent = nil
	return n, err
}

// WriteSome writes what is taken at once, and waits for nothing; to a connection that is no plain
// socket it writes nothing. One goroutine may write at a time.
func (c *Conn) WriteSome(p []byte) (n int, err error) {
	if c.raw == nil {
		return 0, nil
	}
	if c.some == nil {
		c.some = c.writeSome
	}
	c.unsent, c.broken = p, nil
	if err = c.raw.Write(c.some); err == nil {
		err = c.broken
	}
	n = len(p) - len(c.unsent)
	c.unsent = nil
	return n, err
}

// writeSome is writeOn that does not wait.
func (c *Conn) writeSome(fd uintptr) bool {
	c.writeOn(fd)
	return true
}

// WriteWithin is Write that fails where the other end lets it wait for longer. It ends any deadline
// for writing that is set.
func (c *Conn) WriteWithin(limit time.Duration, p []byte) (int, error) {
	if c.raw == nil {
		_ = c.conn.SetWriteDeadline(time.Now().Add(limit))
		return c.conn.Write(p)
	}
	c.limit = limit
	n, err := c.Write(p)
	if c.limit = 0; c.limited {
		c.limited = false
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// limitWait sets the deadline of a write that has to wait. Most need not, and none is set for them.
func (c *Conn) limitWait() {
	if c.limit > 0 && !c.limited {
		c.limited = true
		_ = c.conn.SetWriteDeadline(time.Now().Add(c.limit))
	}
}

// writeOn writes what the system takes now, and reports whether that is all.
func (c *Conn) writeOn(fd uintptr) bool {
	for len(c.unsent) > 0 {
		n, err := sysWrite(fd, c.unsent)
		switch {
		case err == syscall.EAGAIN:
			c.limitWait()
			return false
		case err != nil:
			c.broken = os.NewSyscallError("write", err)
			return true
		}
		c.unsent = c.unsent[n:]
	}
	return true
}

// Forget lets go of what can be made again.
func (c *Conn) Forget() { c.once, c.flow, c.put, c.some = nil, nil, nil, nil }

// CloseWrite tells the other end that no more comes, and reports whether that can be told.
func (c *Conn) CloseWrite() bool {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if ok {
		_ = half.CloseWrite()
	}
	return ok
}

// LocalAddr is this end's address.
func (c *Conn) LocalAddr() string { return c.conn.LocalAddr().String() }

// Close closes the connection. Like what follows it is for any goroutine.
func (c *Conn) Close() error { return c.conn.Close() }

// SetReadDeadline is that of net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// SetWriteDeadline is that of net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }
