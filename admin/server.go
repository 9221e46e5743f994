package admin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxConns is the maximum number of connections at a time. For a further connection, the server
	// closes the oldest connection without a running request.
	MaxConns = 32
	// maxHeader limits the header of a request, in bytes.
	maxHeader = 8 << 10
	// readTimeout limits the time to read a request, writeTimeout the time to write its response,
	// and idleTimeout the time between two requests.
	readTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute
	// shutdownTimeout is the time that running requests have when the server stops.
	shutdownTimeout = 200 * time.Millisecond
)

// Options configures a Server. Ready, Metrics and Page are required.
type Options struct {
	// Ready returns the checks of /readyz, in their order. The server calls it for each request.
	Ready func() []Check
	// Metrics serves /metrics.
	Metrics http.Handler
	// Page serves / and everything below /status/: the status page.
	Page http.Handler
	// Hosts lists the host names that the port accepts, in addition to addresses, localhost and
	// names without a dot.
	Hosts []string
	// Profiles enables /debug/pprof/.
	Profiles bool
	// Logger receives the errors of the server. Nil discards them.
	Logger *slog.Logger
}

// Server serves the admin port of a proxy.
type Server struct {
	httpServer http.Server
	profiles   atomic.Bool

	mu sync.Mutex
	// conns holds the open connections, oldest first.
	conns []*connection
}

// connection holds a connection to the admin port.
type connection struct {
	net.Conn
	busy bool // a request is running
}

// New returns a server that is not yet running.
func New(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{}
	s.profiles.Store(opts.Profiles)
	s.httpServer = http.Server{
		Handler: s.trackRequests(requireOwnName(opts.Hosts, s.handler(opts))), MaxHeaderBytes: maxHeader,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ConnState: s.trackConn, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// SetProfilesEnabled enables or disables /debug/pprof/.
func (s *Server) SetProfilesEnabled(on bool) { s.profiles.Store(on) }

// Run serves ln until ctx ends, then closes it and returns nil. It returns an error if ln fails.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.httpServer.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.httpServer.Close())
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if s.httpServer.Shutdown(shutdown) != nil {
		_ = s.httpServer.Close() // cuts the requests that are still running
	}
	<-failed
	return nil
}

// trackConn keeps at most MaxConns connections. If there are too many, it closes the oldest
// connection without a running request, so that slow clients cannot block fast clients. If all
// connections have a running request, it closes the new connection.
func (s *Server) trackConn(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := s.addConn(conn); surplus != nil {
			_ = surplus.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = slices.DeleteFunc(s.conns, func(c *connection) bool { return c.Conn == conn })
	}
}

// addConn adds a connection. If there are too many, it returns the connection to close.
func (s *Server) addConn(conn net.Conn) (surplus net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, &connection{Conn: conn})
	if len(s.conns) <= MaxConns {
		return nil
	}
	oldest := slices.IndexFunc(s.conns, func(c *connection) bool { return !c.busy })
	surplus = s.conns[oldest].Conn
	s.conns = slices.Delete(s.conns, oldest, oldest+1)
	return surplus
}

// connKey is the context key of a request's net.Conn.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// trackRequests records for each connection whether it has a running request.
func (s *Server) trackRequests(next http.Handler) http.Handler {
	setBusy := func(r *http.Request, busy bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			if c.Conn == r.Context().Value(connKey{}) {
				c.busy = busy
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setBusy(r, true)
		defer setBusy(r, false)
		next.ServeHTTP(w, r)
	})
}

// handler returns the routes of the admin port. They accept only GET and HEAD.
func (s *Server) handler(opts Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", serveLive)
	mux.HandleFunc("GET /readyz", readyHandler(opts.Ready))
	mux.Handle("GET /metrics", opts.Metrics)
	mux.Handle("GET /{$}", opts.Page)
	mux.Handle("GET /status/", opts.Page)
	// The profile cmdline is absent, because the arguments of the process may contain passwords.
	for path, profile := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.HandleFunc("GET "+path, s.ifProfilesEnabled(profile))
	}
	return mux
}

// ifProfilesEnabled returns a handler that responds with 404 while profiles are disabled.
func (s *Server) ifProfilesEnabled(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.profiles.Load() {
			http.NotFound(w, r)
			return
		}
		profile(w, r)
	}
}
