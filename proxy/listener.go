package proxy

import (
	"log/slog"
	"net"
	"sync"
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
	// acceptLogEvery is how often failures are told of, at most.
	acceptLogEvery = time.Minute
)

// acceptErrors are the connections that could not be accepted. Only the accept loop adds
// to them.
type acceptErrors struct {
	log    *slog.Logger
	count  atomic.Int64
	logged time.Time // when the log was told last
	told   int64     // of how many by then
}

// another counts a failure, tells the log if it has not been told just now, and pauses.
func (a *acceptErrors) another(err error) {
	a.tell(err, time.Now())
	time.Sleep(acceptPause)
}

func (a *acceptErrors) tell(err error, now time.Time) {
	n := a.count.Add(1)
	if !a.logged.IsZero() && now.Sub(a.logged) < acceptLogEvery {
		return
	}
	a.log.Error("cannot accept a client", "cause", err, "failures", n-a.told)
	a.logged, a.told = now, n
}

// AcceptErrors counts the connections that could not be accepted.
func (s *Server) AcceptErrors() int64 { return s.refused.count.Load() }

const (
	// complaintsShown is how many complaints the log is told in each complaintTime.
	complaintsShown = 10
	complaintTime   = time.Minute
)

// complaints tell the log of what anybody can cause who reaches the port, and so without end. Any
// goroutine may.
type complaints struct {
	log *slog.Logger

	mu            sync.Mutex
	since         time.Time
	shown, hidden int
}

// tell tells the log, or counts for the next time.
func (c *complaints) tell(now time.Time, text string, about ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= complaintTime {
		c.since, c.shown = now, 0
	}
	if c.shown == complaintsShown {
		c.hidden++
		return
	}
	c.shown++
	if c.hidden > 0 {
		about = append(about, "like_it_before_and_not_shown", c.hidden)
		c.hidden = 0
	}
	c.log.Warn(text, about...)
}
