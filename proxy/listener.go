package proxy

import (
	"context"
	"net"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/netconn"
)

// redconTrigger is the command that makes redcon call the handler. redcon's parser reads nothing
// else.
const redconTrigger = ping

// refusal is Redis' reply to a refused client, byte for byte, because client libraries know it.
const refusal = "-ERR max number of clients reached\r\n"

// refusalTimeout limits the time to write the refusal. The socket buffer of a new connection has
// room for it.
const refusalTimeout = 10 * time.Millisecond

// admissionListener gives redcon connections from which redcon reads only redconTrigger. It refuses
// clients while admit returns false. To a TLS client the plain refusal is invalid TLS.
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
			return &triggerConn{Conn: conn}, nil
		}
		_ = conn.SetWriteDeadline(time.Now().Add(refusalTimeout))
		_, _ = conn.Write([]byte(refusal))
		_ = conn.Close()
	}
}

// triggerConn lets redcon read redconTrigger and nothing else.
type triggerConn struct {
	net.Conn
	triggerRead int
}

// Read returns redconTrigger, then net.ErrClosed.
func (c *triggerConn) Read(p []byte) (int, error) {
	if c.triggerRead == len(redconTrigger) {
		return 0, net.ErrClosed // redcon never reads again: its handler has detached the connection
	}
	n := copy(p, redconTrigger[c.triggerRead:])
	c.triggerRead += n
	return n, nil
}

// Serve serves the clients of ln until ctx ends, and closes ln. Then it drains: it closes idle
// clients immediately, and answers commands that wait for other clients with an error. It closes
// the remaining clients when their commands are done or DrainTimeout has passed. It returns nil, or
// the error of ln.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	serveCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	poller, stopPolling := s.startPolling(serveCtx)
	defer stopPolling()
	defer s.watchUsers(serveCtx)()
	if s.serverState.opts.LockLocation != nil {
		// The reports continue while the server drains.
		defer s.startPauseReports(serveCtx, s.serverState.opts.LockLocation)()
	}
	listener := redcon.NewServerNetwork(ln.Addr().Network(), ln.Addr().String(), s.handler(serveCtx, poller), nil, nil)
	listener.AcceptError = s.serverState.proxyState.acceptErrs.record

	serveErr := make(chan error, 1)
	go func() { serveErr <- listener.Serve(&admissionListener{Listener: ln, admit: s.admit}) }()
	var err error
	select {
	case <-ctx.Done():
		_ = ln.Close()
		err = <-serveErr
	case err = <-serveErr:
	}
	s.drain(serveCtx, cancel)
	return err
}

// admit counts a client, and reports whether there is room for it.
func (s *Server) admit() bool {
	if s.serverState.proxyState.clients.Add(1) > int64(s.MaxClients()) {
		s.serverState.proxyState.clients.Add(-1)
		s.serverState.proxyState.refusedClients.Add(1)
		return false
	}
	return true
}

// handler returns redcon's handler, which detaches each connection from redcon and starts its
// session.
func (s *Server) handler(ctx context.Context, p *netconn.Poller) func(redcon.Conn, redcon.Command) {
	return func(conn redcon.Conn, _ redcon.Command) {
		guarded := conn.Detach().NetConn().(*triggerConn)
		s.start(ctx, guarded.Conn, p)
	}
}
