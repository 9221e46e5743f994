package master

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// silentServer accepts connections without replying, and counts the connections that the client has
// open.
type silentServer struct {
	net.Listener
	mu            sync.Mutex
	openCount     int
	acceptedCount int
}

func startSilentServer(t *testing.T) *silentServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &silentServer{Listener: ln}
	var tasks sync.WaitGroup
	t.Cleanup(func() { ln.Close(); tasks.Wait() })
	tasks.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.add(1)
			tasks.Go(func() {
				defer c.add(-1)
				defer conn.Close()
				for buf := make([]byte, 512); err == nil; {
					_, err = conn.Read(buf) // The server sends no reply.
				}
			})
		}
	})
	return c
}

func (c *silentServer) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openCount += n
	c.acceptedCount += max(0, n)
}

func (c *silentServer) count() (openCount, acceptedCount int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.openCount, c.acceptedCount
}

// TestAbandonedDial checks that abandoned dials leave no connection open. go-redis dials in a
// separate goroutine, which may continue after the time limit. The transport must close a
// connection that this goroutine makes late, and the goroutine must share no data with the caller.
func TestAbandonedDial(t *testing.T) {
	server := startSilentServer(t)
	transport, err := newRedisTransport("redis://"+server.Addr().String(), Access{Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	for i := range 500 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%250)*time.Microsecond)
		if k, err := transport.Dial(ctx, 0); err == nil {
			k.Close()
			t.Error("a server that answers nothing was dialled")
		}
		cancel()
	}
	var openCount, acceptedCount int
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if openCount, acceptedCount = server.count(); openCount == 0 {
			break
		}
	}
	if openCount > 0 || acceptedCount == 0 {
		t.Errorf("%d of %d connections are open", openCount, acceptedCount)
	}
}

// TestDialledConn checks that a connection is closed if it is dialled too late, or is replaced by
// another connection.
func TestDialledConn(t *testing.T) {
	var b dialledConn
	first, firstPeer := net.Pipe()
	second, secondPeer := net.Pipe()
	third, thirdPeer := net.Pipe()
	if b.keep(first) != nil || b.keep(second) != nil {
		t.Error("a connection was refused")
	}
	if got := b.take(); got != second {
		t.Errorf("take returned %v", got)
	}
	if b.keep(third) == nil {
		t.Error("a connection was kept after take")
	}
	for name, peer := range map[string]net.Conn{"replaced": firstPeer, "dialled too late": thirdPeer} {
		_ = peer.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = second.Close()
	_ = secondPeer.Close()
}
