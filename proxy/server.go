package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands"
)

// Options are what a server works with. Table must be set.
type Options struct {
	// Table holds the commands that the proxy answers itself.
	Table *commands.Table
	// Upstream gets what is not in the table. Without one the proxy is a lock server.
	Upstream *Upstream
	// MaxClients is how many clients may be connected. The default is 10000, as in
	// Redis.
	MaxClients int
	// DrainTimeout is how long a stopping server lets run what runs. The default is
	// none at all.
	DrainTimeout time.Duration
	// Logger gets what an operator should know. The default is silence.
	Logger *slog.Logger
}

const defaultMaxClients = 10000

// Server serves the clients of one or more listeners.
type Server struct {
	opts    Options
	lastID  atomic.Int64
	clients atomic.Int64

	mu       sync.Mutex
	sessions map[*session]struct{}
	draining bool
	running  sync.WaitGroup // sessions
}

// NewServer makes a server.
func NewServer(opts Options) *Server {
	if opts.MaxClients == 0 {
		opts.MaxClients = defaultMaxClients
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{opts: opts, sessions: map[*session]struct{}{}}
}

// Clients is the number of clients connected now.
func (s *Server) Clients() int { return int(s.clients.Load()) }

// Serve serves the clients of ln until ctx ends, and closes ln. Then it drains:
// idle clients are closed at once, others when their commands are done or the
// DrainTimeout is over; commands that still wait are answered with an error. It
// returns nil, or why ln failed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	server := redcon.NewServerNetwork(ln.Addr().Network(), ln.Addr().String(), s.handler(base), nil, nil)
	server.AcceptError = s.acceptError

	failed := make(chan error, 1)
	go func() { failed <- server.Serve(&guardListener{Listener: ln, admit: s.admit}) }()
	var err error
	select {
	case <-ctx.Done():
		_ = ln.Close()
		err = <-failed
	case err = <-failed:
	}
	s.drain(cut)
	return err
}

// admit counts a client in, if there is room.
func (s *Server) admit() bool {
	if s.clients.Add(1) > int64(s.opts.MaxClients) {
		s.clients.Add(-1)
		return false
	}
	return true
}

// acceptError pauses: redcon would try again at once, and the usual reason, no
// file descriptor left, does not pass by itself.
func (s *Server) acceptError(err error) {
	s.opts.Logger.Error("cannot accept a client", "cause", err)
	time.Sleep(50 * time.Millisecond)
}

// handler takes each connection out of redcon's hands at its greeting.
func (s *Server) handler(ctx context.Context) func(redcon.Conn, redcon.Command) {
	return func(conn redcon.Conn, _ redcon.Command) {
		guarded := conn.Detach().NetConn().(*guardedConn)
		s.start(ctx, guarded.Conn)
	}
}

// start runs a session of its own goroutine for a connection.
func (s *Server) start(ctx context.Context, conn net.Conn) {
	session := newSession(s, conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		s.clients.Add(-1)
		_ = conn.Close()
		return
	}
	s.sessions[session] = struct{}{}
	s.running.Go(func() {
		defer s.ended(session)
		session.run(ctx)
	})
}

func (s *Server) ended(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
	s.clients.Add(-1)
}

// drain ends the sessions: when they are idle, or when the time is over.
func (s *Server) drain(cut context.CancelCauseFunc) {
	s.mu.Lock()
	s.draining = true
	for session := range s.sessions {
		session.end()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.running.Wait(); close(done) }()
	if waited(done, s.opts.DrainTimeout) {
		return
	}
	cut(commands.ErrShuttingDown)
	if !waited(done, lastWords) {
		s.closeAll()
		<-done
	}
}

// lastWords is how long commands that were cut off have to answer their clients.
const lastWords = 200 * time.Millisecond

func waited(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.sessions {
		_ = session.conn.Close()
	}
}

// errClientLeft is the cause of a context whose client closed its connection.
var errClientLeft = errors.New("the client left")
