package netconn

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"
)

// smallMemory implements Memory with a new small buffer for each read.
type smallMemory struct {
	rng      *rand.Rand
	buf      []byte
	borrowed bool
}

func (s *smallMemory) Buffer() []byte {
	if !s.borrowed {
		s.buf, s.borrowed = make([]byte, 1+s.rng.IntN(3*waitBufSize)), true
	}
	return s.buf
}

func (s *smallMemory) Release() { s.borrowed = false }

// TestReadWithoutSocket checks that a connection that is not a plain socket is read whole and in
// order, in any pieces and with little room. While nothing arrives, no memory is held.
func TestReadWithoutSocket(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var want []byte
	for range 200 {
		part := make([]byte, 1+rng.IntN(4*waitBufSize))
		for i := range part {
			part[i] = byte(rng.UintN(256))
		}
		want = append(want, part...)
	}
	near, far := net.Pipe()
	defer near.Close()
	go func() {
		defer far.Close()
		for rest := want; len(rest) > 0; {
			n, _ := far.Write(rest[:min(len(rest), 1+len(rest)%(2*waitBufSize))])
			rest = rest[n:]
		}
	}()
	memory := &smallMemory{rng: rng}
	c := New(near, memory, &Activity{})
	var got []byte
	for {
		n, err := c.Read()
		got = append(got, memory.buf[:n]...)
		if memory.borrowed = false; err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes came, want the same %d", len(got), len(want))
	}
	if c.Park() == nil {
		t.Error("it can be parked")
	}
}

// TestNoMemoryWhileWaiting checks that a Conn that waits for the first byte holds no memory.
func TestNoMemoryWhileWaiting(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	memory := &PooledBuffer{}
	memory.Buffer()
	c := New(near, memory, &Activity{})
	done := make(chan struct{})
	go func() { defer close(done); _, _ = c.Read() }()
	_, _ = far.Write(nil) // returns when the other end reads
	if memory.buf != nil {
		t.Error("a buffer is held")
	}
	_ = far.Close()
	<-done
}

// socketPair returns the two ends of a TCP connection.
func socketPair(t *testing.T) (localConn, remoteConn net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if remoteConn, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if localConn, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = localConn.Close(), remoteConn.Close() })
	return localConn, remoteConn
}

// TestWriteWithin checks that a write that waits for the other end fails at the limit. A write that
// succeeds clears its deadline.
func TestWriteWithin(t *testing.T) {
	const size = 16 << 20 // more than fits into the buffers
	near, far := socketPair(t)
	c := New(near, &PooledBuffer{}, &Activity{})
	n, err := c.WriteWithin(10*time.Millisecond, make([]byte, size))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n >= size {
		t.Errorf("%d bytes, %v", n, err)
	}
	near, far = socketPair(t)
	c = New(near, &PooledBuffer{}, &Activity{})
	go func() { _, _ = io.CopyN(io.Discard, far, 2*size) }()
	for range 2 {
		if n, err := c.WriteWithin(time.Hour, make([]byte, size)); err != nil || n != size || c.hasDeadline {
			t.Errorf("%d bytes, %v, limited %v", n, err, c.hasDeadline)
		}
	}
	far.Close()
	for err = nil; err == nil; {
		_, err = c.Write([]byte("x"))
	}
}

// TestWriteWithinWithoutSocket checks that the limit also applies to a connection that is not a
// plain socket.
func TestWriteWithinWithoutSocket(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if _, err := New(near, &PooledBuffer{}, &Activity{}).WriteWithin(time.Millisecond, []byte("x")); !errors.Is(err,
		os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
