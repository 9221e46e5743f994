package proxy

import (
	"net"
	"sync"
	"syscall"
)

// wire reads from a connection, and needs no memory while it waits for something
// to read: with it thousands of idle clients cost no buffers.
type wire struct {
	conn net.Conn
	// room gives the memory to read into; rest is told that nothing came, so that
	// the memory may be given up until room is called again.
	room func() []byte
	rest func()

	raw syscall.RawConn // nil where the connection is not a plain socket
	try func(fd uintptr) bool
	n   int
	err error
}

func newWire(conn net.Conn, room func() []byte, rest func()) *wire {
	w := &wire{conn: conn, room: room, rest: rest}
	w.try = w.attempt
	if c, ok := conn.(syscall.Conn); ok && canAttempt {
		w.raw, _ = c.SyscallConn()
	}
	return w
}

// read reads once. It returns io.EOF at the end.
func (w *wire) read() (int, error) {
	if w.raw == nil {
		return w.conn.Read(w.room())
	}
	if err := w.raw.Read(w.try); err != nil {
		return 0, err
	}
	return w.n, w.err
}

// pump reads again and again, and has each part handled, until handle says that
// it wants no more or reading fails; then it returns why. It asks the system once
// more behind a part that did not fill its room, for the end of the stream may
// stand there already, and then nothing else will tell of it. And handle runs
// outside of the connection's lock on reads, so that it may read, and others close.
func (w *wire) pump(handle func(n int) bool) error {
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
