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
	// MaxConns is how many connections there may be at a time. For a further one the oldest is
	// closed that is not being answered.
	MaxConns = 32
	// maxHeader bounds the head of a request, in bytes.
	maxHeader = 8 << 10
	// readTimeout bounds the time for a request, writeTimeout for its answer, and idleTimeout the
	// time between two.
	readTimeout  = 5 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute
	// farewellTime is how long answers under way have when the server ends.
	farewellTime = 200 * time.Millisecond
)

// Options are what a server works with. Ready, Metrics and Page must be set.
type Options struct {
	// Ready gives the checks of /readyz, in their order. It is called for each request.
	Ready func() []Check
	// Metrics answers /metrics.
	Metrics http.Handler
	// Page answers / and all under /status/: the page for people.
	Page http.Handler
	// Names are those by which the port may be asked, beside addresses, localhost and names without
	// a dot.
	Names []string
	// Profiles has /debug/pprof/ served.
	Profiles bool
	// Logger gets what goes wrong in the server. The default is silence.
	Logger *slog.Logger
}

// Server is the admin port of a proxy.
type Server struct {
	http     http.Server
	profiles atomic.Bool

	mu sync.Mutex
	// conns are the connections in the order in which they came.
	conns []*connection
}

// connection is one of a server.
type connection struct {
	net.Conn
	busy bool // a request of it is being answered
}

// New makes a server.
func New(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{}
	s.profiles.Store(opts.Profiles)
	s.http = http.Server{
		Handler: s.busy(byOwnName(opts.Names, s.handler(opts))), MaxHeaderBytes: maxHeader,
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ConnState: s.bound, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
	}
	return s
}

// ServeProfiles has /debug/pprof/ served or not, from now on.
func (s *Server) ServeProfiles(on bool) { s.profiles.Store(on) }

// Run serves ln until ctx ends, and closes it. It returns nil, or why ln failed.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.http.Close())
	case <-ctx.Done():
	}
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellTime)
	defer cancel()
	if s.http.Shutdown(soon) != nil {
		_ = s.http.Close() // of what was not answered in time
	}
	<-failed
	return nil
}

// bound has a new connection take the place of the oldest that is not being answered, where there
// are too many: however slowly others send their requests, a quick one is answered. Where all are
// being answered, the new one is closed.
func (s *Server) bound(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if surplus := s.add(conn); surplus != nil {
			_ = surplus.Close()
		}
	case http.StateClosed, http.StateHijacked:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = slices.DeleteFunc(s.conns, func(c *connection) bool { return c.Conn == conn })
	}
}

// add adds a connection, and gives the one that has to go for it, if any.
func (s *Server) add(conn net.Conn) (surplus net.Conn) {
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

// connKey is where a request has its net.Conn.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// busy notes of connections that they are being answered.
func (s *Server) busy(next http.Handler) http.Handler {
	note := func(r *http.Request, busy bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.conns {
			if c.Conn == r.Context().Value(connKey{}) {
				c.busy = busy
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r, true)
		defer note(r, false)
		next.ServeHTTP(w, r)
	})
}

// handler knows the pages. Nothing but GET and HEAD is taken for any of them.
func (s *Server) handler(opts Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", ready(opts.Ready))
	mux.Handle("GET /metrics", opts.Metrics)
	mux.Handle("GET /{$}", opts.Page)
	mux.Handle("GET /status/", opts.Page)
	// Not cmdline: the arguments of the process may hold passwords.
	for path, profile := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.HandleFunc("GET "+path, s.ifProfiles(profile))
	}
	return mux
}

// ifProfiles is a page that there is only while profiles are served.
func (s *Server) ifProfiles(profile http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.profiles.Load() {
			http.NotFound(w, r)
			return
		}
		profile(w, r)
	}
}
