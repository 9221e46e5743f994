package faultlink

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	linkConnBuffer = 32 << 10 // bytes buffered per direction
	dialTimeout    = 5 * time.Second
)

// linkConn forwards one connection of a Link between a client and the target.
type linkConn struct {
	client   *net.TCPConn
	blockers *blockers
	delay    *atomic.Int64 // of the target's replies, in nanoseconds
	done     chan struct{} // closed by reset

	mu      sync.Mutex
	server  *net.TCPConn // nil until dialled
	isReset bool         // reset was called
}

func newLinkConn(client *net.TCPConn, b *blockers, delay *atomic.Int64) *linkConn {
	return &linkConn{client: client, blockers: b, delay: delay, done: make(chan struct{})}
}

// run dials the target and copies in both directions until both have ended. If run cannot dial the
// target, it resets the client.
func (c *linkConn) run(target string) {
	defer c.reset() // does nothing to sides that are closed already
	if !c.blockers.requests.waitUnblocked(c.done) {
		return
	}
	conn, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil || !c.attach(conn.(*net.TCPConn)) {
		return
	}
	var copiers sync.WaitGroup
	copiers.Go(func() { c.copy(c.server, c.client) })
	copiers.Go(func() { c.copy(c.client, c.server) })
	copiers.Wait()
}

// attach adds the target's side. It returns false if reset was called meanwhile.
func (c *linkConn) attach(server *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isReset {
		_ = server.Close()
		return false
	}
	c.server = server
	return true
}

// copy copies bytes in one direction, then the end of the stream. An abnormal end resets both
// sides, as a router's RST would.
func (c *linkConn) copy(to, from *net.TCPConn) {
	buffer := make([]byte, linkConnBuffer)
	for {
		n, err := from.Read(buffer)
		if from == c.server {
			c.waitDelay()
		}
		if !c.write(to, buffer[:n]) {
			return
		}
		if err != nil {
			c.end(to, err)
			return
		}
	}
}

// waitDelay waits for the link's delay of replies.
func (c *linkConn) waitDelay() {
	delay := time.Duration(c.delay.Load())
	if delay == 0 {
		return
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	}
}

// write writes all of data, and waits while writes are blocked. It returns false if the connection
// was reset. A cut interrupts a running write. The remaining data waits until writes are unblocked.
func (c *linkConn) write(to *net.TCPConn, data []byte) bool {
	for len(data) > 0 {
		writes := c.blockerOf(to)
		if !writes.beginWrite(c.done) {
			return false
		}
		n, err := to.Write(data)
		writes.endWrite()
		data = data[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			c.reset()
			return false
		}
	}
	return true
}

// end passes on the end of a stream, and waits while writes are blocked.
func (c *linkConn) end(to *net.TCPConn, cause error) {
	writes := c.blockerOf(to)
	if !writes.beginWrite(c.done) {
		return
	}
	defer writes.endWrite()
	if errors.Is(cause, io.EOF) {
		_ = to.CloseWrite()
		return
	}
	c.reset()
}

// blockerOf returns the blocker of the writes to one side.
func (c *linkConn) blockerOf(side *net.TCPConn) *blocker {
	if side == c.client {
		return c.blockers.replies
	}
	return c.blockers.requests
}

// interruptRequests ends running writes to the target and prevents new ones until resume.
func (c *linkConn) interruptRequests() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		_ = c.server.SetWriteDeadline(time.Unix(1, 0)) // fails on a closed connection only
	}
}

// interruptReplies ends running writes to the client and prevents new ones until resume.
func (c *linkConn) interruptReplies() { _ = c.client.SetWriteDeadline(time.Unix(1, 0)) }

// resume undoes interruptRequests and interruptReplies.
func (c *linkConn) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.client.SetWriteDeadline(time.Time{})
	if c.server != nil {
		_ = c.server.SetWriteDeadline(time.Time{})
	}
}

// reset closes both sides with RST if they are still open, and ends run.
func (c *linkConn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isReset {
		return
	}
	c.isReset = true
	close(c.done)
	abort(c.client)
	if c.server != nil {
		abort(c.server)
	}
}

// abort closes a connection with RST.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
