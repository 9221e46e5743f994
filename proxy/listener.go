package proxy

import (
	"log/slog"
	"net"
	"sync/atomic"
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
// where admit says no. Those that speak TLS take its text for broken TLS; the health
// check knows better.
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

const (
	// acceptPause is how long nothing is accepted after a failure: redcon would try again
	// at once, and the usual reason, no file descriptor left, does not pass by itself.
	acceptPause = 50 * time.Millisecond
	// acceptLogEvery is how often failures are logged, at most.
	acceptLogEvery = time.Minute
)

// acceptErrors are the connections that could not be accepted. Only the accept loop adds
// to them.
type acceptErrors struct {
	log    *slog.Logger
	count  atomic.Int64
	logged time.Time // when one was logged last
	known  int64     // how many there were by then
}

// another counts a failure, logs it unless one was logged just now, and pauses.
func (a *acceptErrors) another(err error) {
	a.report(err, time.Now())
	time.Sleep(acceptPause)
}

func (a *acceptErrors) report(err error, now time.Time) {
	n := a.count.Add(1)
	if !a.logged.IsZero() && now.Sub(a.logged) < acceptLogEvery {
		return
	}
	a.log.Error("cannot accept a client", "cause", err, "failures", n-a.known)
	a.logged, a.known = now, n
}

// AcceptErrors counts the connections that could not be accepted.
func (s *Server) AcceptErrors() int64 { return s.refused.count.Load() }
