package proxy

import (
	"context"
	"net"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/netconn"
)

// greeting is all that redcon's parser ever reads.
const greeting = ping

// refusal is Redis' reply to a client that it refuses, byte for byte: client libraries know it.
const refusal = "-ERR max number of clients reached\r\n"

// refusalTimeout limits the time to write the refusal. The socket of a new connection has room for
// it.
const refusalTimeout = 10 * time.Millisecond

// admissionListener gives redcon connections that send the greeting. It refuses clients while admit
// returns false. A TLS client takes the plain refusal for broken TLS.
type admissionListener struct {
	net.Listener
	admit func() bool
}

// Accept returns the next client that is admitted.
func (l *admissionListener) Accept() (net.Conn, error) {
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

// Read returns the greeting, then net.ErrClosed.
func (c *guardedConn) Read(p []byte) (int, error) {
	if c.greeted == len(greeting) {
		return 0, net.ErrClosed // redcon never reads again: its handler has detached the connection
	}
	n := copy(p, greeting[c.greeted:])
	c.greeted += n
	return n, nil
}

// Serve serves the clients of ln until ctx ends, and closes ln. Then it drains: it closes idle
// clients at once, and answers commands that wait for other clients with an error. It closes the
// remaining clients when their commands are done or DrainTimeout has passed. It returns nil, or the
// error of ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	poller, stopPolling := s.startPolling(base)
	defer stopPolling()
	defer s.followUsers(base)()
	if s.shared.opts.LockLocation != nil {
		defer s.startPausing(base, s.shared.opts.LockLocation)() // also while it drains
	}
	listener := redcon.NewServerNetwork(ln.Addr().Network(), ln.Addr().String(), s.handler(base, poller), nil, nil)
	listener.AcceptError = s.refused.record

	failed := make(chan error, 1)
	go func() { failed <- listener.Serve(&admissionListener{Listener: ln, admit: s.admit}) }()
	var err error
	select {
	case <-ctx.Done():
		_ = ln.Close()
		err = <-failed
	case err = <-failed:
	}
	s.drain(base, cut)
	return err
}

// admit counts a client, and reports whether there is room for it.
func (s *Server) admit() bool {
	if s.clients.Add(1) > int64(s.MaxClients()) {
		s.clients.Add(-1)
		s.turnedAway.Add(1)
		return false
	}
	return true
}

// handler detaches each connection from redcon at its greeting, and starts its session.
func (s *Server) handler(ctx context.Context, p *netconn.Poller) func(redcon.Conn, redcon.Command) {
	return func(conn redcon.Conn, _ redcon.Command) {
		guarded := conn.Detach().NetConn().(*guardedConn)
		s.start(ctx, guarded.Conn, p)
	}
}
