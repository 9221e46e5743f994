package proxy

import (
	"net"
	"time"
)

// greeting is all that redcon's parser ever reads.
const greeting = "*1\r\n$4\r\nPING\r\n"

// refusal is how Redis turns a client away, byte for byte: libraries know it.
const refusal = "-ERR max number of clients reached\r\n"

// refusalTimeout bounds the time to tell a client that it is turned away. The
// socket of a new connection has room for it.
const refusalTimeout = 10 * time.Millisecond

// guardListener hands redcon connections that greet it, and turns clients away
// where admit says no.
type guardListener struct {
	net.Listener
	admit func() bool
}

// Accept gives the next client that is admitted.
func (l *guardListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.admit() {
			return &guardedConn{Conn: conn}, nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(refusalTimeout))
		_, _ = conn.Write([]byte(refusal))
		_ = conn.Close()
	}
}

// guardedConn lets redcon read the greeting and nothing else.
type guardedConn struct {
	net.Conn
	greeted int
}

// Read gives the greeting, then net.ErrClosed.
func (c *guardedConn) Read(p []byte) (int, error) {
	if c.greeted == len(greeting) {
		return 0, net.ErrClosed // redcon never asks: its handler has detached
	}
	n := copy(p, greeting[c.greeted:])
	c.greeted += n
	return n, nil
}
