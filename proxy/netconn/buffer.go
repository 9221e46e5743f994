package netconn

import "sync"

// Memory provides the buffer that a connection reads into. It belongs to the goroutine that reads.
type Memory interface {
	// Buffer returns the memory to read into.
	Buffer() []byte
	// Release may free the memory; the next call of Buffer then provides new memory. A Conn calls
	// Release if no bytes have arrived.
	Release()
}

// PooledBuffer implements Memory. It holds a buffer only while there are bytes to read.
type PooledBuffer struct{ buf []byte }

// Buffer implements Memory.
func (l *PooledBuffer) Buffer() []byte {
	if l.buf == nil {
		l.buf = GetBuffer()
	}
	return l.buf
}

// Release implements Memory.
func (l *PooledBuffer) Release() {
	PutBuffer(l.buf)
	l.buf = nil
}

// BufferSize is the number of bytes that are read at a time.
const BufferSize = 16 << 10

// buffers holds buffers for connections that have bytes to read.
var buffers = sync.Pool{New: func() any { return new([BufferSize]byte) }}

// GetBuffer returns a buffer of BufferSize bytes.
func GetBuffer() []byte { return buffers.Get().(*[BufferSize]byte)[:] }

// PutBuffer returns a buffer from GetBuffer to the pool. It ignores buffers of other sizes.
func PutBuffer(buf []byte) {
	if cap(buf) == BufferSize {
		buffers.Put((*[BufferSize]byte)(buf[:BufferSize]))
	}
}
