package proxy

import (
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// wire reads from a connection, and needs no memory while it waits for something
// to read: with it thousands of idle clients cost no buffers. It writes, too.
type wire struct {
	conn   net.Conn
	memory memory
	stir   *stir

	raw syscall.RawConn // nil where the connection is not a plain socket
	// told: the poller will tell of the end of the stream; ended: it has.
	told  bool
	ended atomic.Bool

	// Of the read that is going on.
	n      int
	err    error
	handle func(n int) bool
	// Of the write that is going on.
	unsent []byte
	broken error
	// The methods by these names, made when first used.
	once, flow, put func(fd uintptr) bool
}

// memory is what a wire reads into.
type memory interface {
	// room gives the memory to read into.
	room() []byte
	// rest is told that nothing came, so that the memory may be given up until room
	// is called again.
	rest()
}

func newWire(conn net.Conn, memory memory, stir *stir) *wire {
	w := &wire{conn: conn, memory: memory, stir: stir}
	if c, ok := conn.(syscall.Conn); ok && canAttempt {
		w.raw, _ = c.SyscallConn()
	}
	return w
}

// toldBy has the poller tell of the end of the stream, if there is a poller and it
// can.
func (w *wire) toldBy(p *poller, t tag) {
	w.told = p != nil && w.raw != nil && p.add(w.raw, t, theEnd) == nil
}

// read reads once. It returns io.EOF at the end.
func (w *wire) read() (int, error) {
	if w.raw == nil {
		n, err := w.conn.Read(w.memory.room())
		w.stir.happened()
		return n, err
	}
	if w.once == nil {
		w.once = w.readOnce
	}
	if err := w.raw.Read(w.once); err != nil {
		return 0, err
	}
	return w.n, w.err
}

// readOnce reads if there is something, and reports whether that is an answer.
func (w *wire) readOnce(fd uintptr) bool {
	w.n, w.err = sysRead(fd, w.memory.room())
	switch {
	case w.err == syscall.EAGAIN:
		w.memory.rest()
		return false
	case w.err != nil:
		w.n, w.err = 0, os.NewSyscallError("read", w.err)
	case w.n == 0:
		w.err = io.EOF
	}
	w.stir.happened()
	return true
}

// pump reads again and again, and has each part handled, until handle says that
// it wants no more or reading fails; then it returns why. handle must neither read
// from the connection nor close it.
func (w *wire) pump(handle func(n int) bool) error {
	if w.raw == nil || !w.told {
		return w.pumpAsking(handle)
	}
	if w.flow == nil {
		w.flow = w.readOn
	}
	w.handle, w.err = handle, nil
	defer func() { w.handle = nil }()
	for w.handle != nil && w.err == nil {
		if err := w.raw.Read(w.flow); err != nil {
			return err
		}
	}
	return w.err
}

// readOn reads and handles what comes, and reports whether it must be called anew.
//
// Behind a part that did not fill its room it waits without asking the system once
// more, which saves every second read. What arrives after the read is an event of
// its own for Go's poller, which keeps it until the wait; that is why all of this is
// one RawConn.Read, for the next one would forget it. An end of the stream that
// arrived with the bytes is no further event there, but is told by the proxy's own
// poller.
func (w *wire) readOn(fd uintptr) bool {
	if !w.readOnce(fd) {
		return false
	}
	full := w.n == len(w.memory.room())
	if w.n > 0 && !w.handle(w.n) {
		w.handle = nil
		return true
	}
	if full || w.err != nil || w.ended.Load() {
		return true
	}
	w.memory.rest()
	return false
}

// pumpAsking is pump where nobody tells of the end of the stream: it asks the
// system behind every part, for the end may stand there already.
func (w *wire) pumpAsking(handle func(n int) bool) error {
	for {
		n, err := w.read()
		if n > 0 && !handle(n) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// end is told that the other end sends no more. Closing this direction, too, loses
// nothing that has arrived, and wakes the goroutine that waits for more.
func (w *wire) end() {
	if c, ok := w.conn.(interface{ CloseRead() error }); ok && !w.ended.Swap(true) {
		_ = c.CloseRead()
	}
}

// Write writes all of p. One goroutine may write at a time.
func (w *wire) Write(p []byte) (int, error) {
	if w.raw == nil {
		return w.conn.Write(p)
	}
	if w.put == nil {
		w.put = w.writeOn
	}
	w.unsent, w.broken = p, nil
	err := w.raw.Write(w.put)
	if err == nil {
		err = w.broken
	}
	n := len(p) - len(w.unsent)
	w.unsent = nil
	return n, err
}

// writeOn writes what the system takes now, and reports whether that is all.
func (w *wire) writeOn(fd uintptr) bool {
	for len(w.unsent) > 0 {
		n, err := sysWrite(fd, w.unsent)
		switch {
		case err == syscall.EAGAIN:
			return false
		case err != nil:
			w.broken = os.NewSyscallError("write", err)
			return true
		}
		w.unsent = w.unsent[n:]
	}
	return true
}

// forget lets go of what can be made again.
func (w *wire) forget() { w.once, w.flow, w.put = nil, nil, nil }

// bufferSize is what is read at a time.
const bufferSize = 16 << 10

// buffers are for connections that have something to read.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func borrow() []byte { return buffers.Get().(*[bufferSize]byte)[:] }

// giveBack takes what borrow gave; a buffer of another size is left to the
// garbage collector.
func giveBack(buf []byte) {
	if cap(buf) == bufferSize {
		buffers.Put((*[bufferSize]byte)(buf[:bufferSize]))
	}
}
