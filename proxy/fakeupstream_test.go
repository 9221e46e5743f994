package proxy_test

import (
	"bufio"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeUpstream acts as an upstream, by a script of the test.
type fakeUpstream struct {
	*testing.T
	ln     net.Listener
	script func(c *fakeConn)

	mu       sync.Mutex
	received []string // the commands of all clients
	conns    []net.Conn
	running  sync.WaitGroup
}

// fakeConn is a client's connection to a fakeUpstream.
type fakeConn struct {
	net.Conn
	fake *fakeUpstream
	in   *bufio.Reader
}

// startFake runs script for each connection, and closes the connection afterwards. It answers
// probes, which begin with PING, itself.
func startFake(t *testing.T, script func(c *fakeConn)) *fakeUpstream {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeUpstream{T: t, ln: ln, script: script}
	f.running.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

func (f *fakeUpstream) addr() string { return f.ln.Addr().String() }
func (f *fakeUpstream) url() string  { return "redis://" + f.addr() }

func (f *fakeUpstream) accept() {
	for {
		conn, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns = append(f.conns, conn)
		f.mu.Unlock()
		f.running.Go(func() { f.serve(conn) })
	}
}

func (f *fakeUpstream) serve(conn net.Conn) {
	defer conn.Close()
	c := &fakeConn{conn, f, bufio.NewReader(conn)}
	first, err := c.in.Peek(len(ping))
	if err == nil && string(first) == ping {
		_, _ = c.in.Discard(len(ping))
		c.write("+PONG\r\n")
		// These are the other replies to a probe.
		for _, answer := range []string{"$7\r\ndefault\r\n", openUser} {
			if _, err := readReply(c.in); err != nil {
				return
			}
			c.write(answer)
		}
		return
	}
	f.script(c)
}

// openUser is the reply to ACL GETUSER for a user that may do everything.
const openUser = "*6\r\n$8\r\ncommands\r\n$5\r\n+@all\r\n$4\r\nkeys\r\n$2\r\n~*\r\n$8\r\nchannels\r\n$2\r\n&*\r\n"

const ping = "*1\r\n$4\r\nPING\r\n"

func (f *fakeUpstream) close() {
	_ = f.ln.Close()
	f.mu.Lock()
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// commands returns the commands that have arrived so far, on any connection.
func (f *fakeUpstream) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.received)
}

// read reads n commands, and reports whether they have arrived.
func (c *fakeConn) read(n int) bool {
	for range n {
		raw, err := readReply(c.in) // a command has the format of an array reply
		if err != nil {
			return false
		}
		words := strings.Split(raw, "\r\n")
		c.fake.mu.Lock()
		c.fake.received = append(c.fake.received, words[2])
		c.fake.mu.Unlock()
	}
	return true
}

func (c *fakeConn) write(s string) {
	_ = c.SetWriteDeadline(time.Now().Add(testTimeout))
	_, _ = io.WriteString(c, s)
}
