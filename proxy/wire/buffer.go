package wire

import "sync"

// Memory is what a connection reads into. It belongs to the goroutine that reads.
type Memory interface {
	// Room gives the memory to read into.
	Room() []byte
	// Rest is told that nothing came, so that the memory may be given up until Room
	// is called again.
	Rest()
}

// Loan is memory for as long as there is something to read.
type Loan struct{ buf []byte }

// Room is of Memory.
func (l *Loan) Room() []byte {
	if l.buf == nil {
		l.buf = Borrow()
	}
	return l.buf
}

// Rest is of Memory.
func (l *Loan) Rest() {
	GiveBack(l.buf)
	l.buf = nil
}

// BufferSize is what is read at a time.
const BufferSize = 16 << 10

// buffers are for connections that have something to read.
var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// Borrow gives a buffer of BufferSize.
func Borrow() []byte { return buffers.Get().(*[BufferSize]byte)[:] }

// GiveBack takes what Borrow gave; a buffer of another size is left to the
// garbage collector.
func GiveBack(buf []byte) {
	if cap(buf) == BufferSize {
		buffers.Put((*[BufferSize]byte)(buf[:BufferSize]))
	}
}
