package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/netconn"
	"redlock-proxy/proxy/track"
)

// Apply replaces all settings. No client and no command gets a mix of old and new settings, except
// that new memory limits apply to all clients immediately. Any goroutine may call Apply at any
// time.
func (s *Server) Apply(settings Settings) {
	settings.MaxClients = cmp.Or(settings.MaxClients, defaultMaxClients)
	s.shared.input.limit.Store(cmp.Or(settings.MaxInputMemory, defaultMaxInput))
	s.shared.unread.setLimit(cmp.Or(settings.MaxUnreadMemory, defaultMaxUnread))
	s.shared.current.Store(&settings)
}

// MaxClients returns the present limit of connected clients.
func (s *Server) MaxClients() int { return s.shared.settings().MaxClients }

// Server serves the clients of a listener.
type Server struct {
	shared   shared
	idleTime time.Duration                        // the constant idleTime, except in tests; set once
	waker    func(context.Context, *session) bool // the method wake, for all sessions

	clients    atomic.Int64
	acceptErrs acceptErrors
	// refusedClients counts the clients refused because of MaxClients.
	refusedClients atomic.Int64

	mu       sync.Mutex
	sessions map[int64]*session // by the client's ID
	draining bool

	// running counts all sessions, also parked sessions, and the goroutines of dropOutdatedConns.
	// Add is called with mu held.
	running sync.WaitGroup
}

// NewServer returns a server.
func NewServer(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{sessions: map[int64]*session{}, idleTime: idleTime}
	s.shared.opts, s.shared.now = opts, time.Now
	s.shared.times, s.shared.handshakeTimeout = relayTimes{stallTime, lingerTime}, handshakeTimeout
	s.shared.untracked = track.NewTracker(0, false)
	s.waker = s.wake
	s.shared.halfClosed.turn = make(chan struct{}, 1)
	s.shared.input.sharedBytes = opts.Table.ScriptMemory
	s.Apply(Settings{
		ClientPassword: opts.ClientPassword, TLS: opts.TLS, ProtectedMode: opts.ProtectedMode,
		MaxClients: opts.MaxClients, DrainTimeout: opts.DrainTimeout,
	})
	s.acceptErrs.log, s.shared.clientLog.log, s.shared.redirectLog.log = opts.Logger, opts.Logger, opts.Logger
	if opts.Upstream != nil {
		opts.Upstream.OnFailover(s.dropOutdatedConns)
	}
	return s
}

// Clients returns the number of clients connected now.
func (s *Server) Clients() int { return int(s.clients.Load()) }

// start runs a session for a connection, in its own goroutine.
func (s *Server) start(ctx context.Context, conn net.Conn, p *netconn.Poller) {
	settings := s.shared.settings()
	if settings.TLS != nil {
		conn = tls.Server(conn, settings.TLS)
	}
	session := newSession(&s.shared, conn, p, settings, s.waker)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		s.clients.Add(-1)
		_ = conn.Close()
		return
	}
	s.sessions[session.client.ID] = session
	// From now on the poller looks up this session.
	session.in.conn.Join(p, netconn.TagOf(session.client.ID, 0))
	s.running.Add(1)
	go s.run(ctx, session)
}

// run is a session's goroutine. It starts when the session starts or is woken, and returns when the
// session ends or is parked.
func (s *Server) run(ctx context.Context, session *session) {
	if !session.run(ctx) {
		s.remove(session)
		s.running.Done()
	}
}

func (s *Server) remove(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.client.ID)
	s.clients.Add(-1)
}

// dropOutdatedConns ends all relays' connections to a server that is no longer the upstream, or
// must not be used. It uses a goroutine for each relay, so that no relay delays another relay.
func (s *Server) dropOutdatedConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		s.running.Go(func() {
			session.relay.dropOutdated()
		})
	}
}

// beginDrain refuses new sessions from now on, and returns the existing sessions.
func (s *Server) beginDrain() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	return slices.Collect(maps.Values(s.sessions))
}

// allSessions returns the current sessions.
func (s *Server) allSessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// wake restarts a session's goroutine, if the session is parked.
func (s *Server) wake(ctx context.Context, session *session) bool {
	woken := session.unpark()
	if woken {
		go s.run(ctx, session)
	}
	return woken
}

// IsProtected reports whether protected mode refuses clients from other machines now.
func (s *Server) IsProtected() bool { return s.shared.protects(s.shared.settings()) }

// connAddrs returns the nonempty addresses that addrOf returns for the relays of sessions.
func connAddrs(sessions []*session, addrOf func(*relay) string) (addresses []string) {
	for _, session := range sessions {
		if address := addrOf(session.relay); address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// watchUsers disconnects, until stop is called, each client whose login is no longer valid. It also
// disconnects a client that gets messages if its user may have lost the right to them.
func (s *Server) watchUsers(ctx context.Context) (stop func()) {
	ownUsers := s.shared.opts.Users
	if ownUsers == nil {
		return func() {}
	}
	return ownUsers.Watch(func(changed func(string) bool) {
		for _, session := range s.allSessions() {
			name := session.login.UserLogin.Name()
			if session.login.UserLogin.Ended() || changed(name) && session.getsMessages() && !ownUsers.Current().Find(name).MayAll() {
				session.disconnect()
				s.wake(ctx, session)
			}
		}
	})
}
