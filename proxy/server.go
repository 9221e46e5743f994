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
	"time"

	"redlock-proxy/proxy/netconn"
	"redlock-proxy/proxy/track"
)

// Apply applies all settings atomically, for all servers with the same ProxyState. Each client and
// each of its commands sees either the old or the new settings, never a mixture. Any goroutine may
// call it at any time.
func (s *Server) Apply(settings Settings) { s.serverState.proxyState.apply(settings) }

// MaxClients returns the present limit of connected clients.
func (s *Server) MaxClients() int { return s.serverState.settings().MaxClients }

// Server serves the clients of a listener.
type Server struct {
	serverState serverState
	idleTime    time.Duration                        // the constant idleTime, except in tests; set once
	waker       func(context.Context, *session) bool // the method wake, for all sessions

	mu       sync.Mutex
	sessions map[int64]*session // keyed by the client's ID
	draining bool

	// running counts all sessions, also parked sessions, and the goroutines of dropOutdatedConns.
	// Add requires mu.
	running sync.WaitGroup
}

// NewServer returns a server.
func NewServer(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{sessions: map[int64]*session{}, idleTime: idleTime}
	s.serverState.opts, s.serverState.now, s.serverState.proxyState = opts, time.Now, opts.ProxyState
	if opts.ProxyState == nil {
		s.serverState.proxyState = newProxyState(Settings{
			ClientPassword: opts.ClientPassword, TLS: opts.TLS, ProtectedMode: opts.ProtectedMode,
			MaxClients: opts.MaxClients, DrainTimeout: opts.DrainTimeout,
		}, opts.Table.ScriptMemory, opts.Logger)
	}
	s.serverState.times, s.serverState.handshakeTimeout = relayTimes{stallTime, lingerTime}, handshakeTimeout
	s.serverState.lockServerTracker = track.NewTracker(0, false)
	s.waker = s.wake
	if opts.Upstream != nil {
		opts.Upstream.OnFailover(s.dropOutdatedConns)
	}
	return s
}

// Common returns the state that this server shares with other servers.
func (s *Server) Common() *ProxyState { return s.serverState.proxyState }

// Clients returns the number of clients connected now, at all servers with the same ProxyState.
func (s *Server) Clients() int { return int(s.serverState.proxyState.clients.Load()) }

// Connections returns the number of clients connected at this server.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// start runs a session for a connection, in its own goroutine.
func (s *Server) start(ctx context.Context, conn net.Conn, p *netconn.Poller) {
	settings := s.serverState.settings()
	if settings.TLS != nil {
		conn = tls.Server(conn, settings.TLS)
	}
	session := newSession(&s.serverState, conn, p, settings, s.waker)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		s.serverState.proxyState.clients.Add(-1)
		_ = conn.Close()
		return
	}
	s.sessions[session.client.ID] = session
	// From now on the poller looks up this session.
	session.in.conn.Join(p, netconn.TagOf(session.client.ID, 0))
	s.running.Add(1)
	go s.run(ctx, session)
}

// run is the body of a session's goroutine. It starts when the session starts or is woken, and
// returns when the session ends or is parked.
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
	s.serverState.proxyState.clients.Add(-1)
}

// dropOutdatedConns ends all relays' connections to a server that is no longer the upstream, or
// must not be used. It uses a goroutine for each relay, so that no relay delays another relay.
func (s *Server) dropOutdatedConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		s.running.Go(func() {
			session.relay.dropOutdatedConn()
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
func (s *Server) IsProtected() bool { return s.serverState.protects(s.serverState.settings()) }

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
	ownUsers := s.serverState.opts.Users
	if ownUsers == nil {
		return func() {}
	}
	return ownUsers.Watch(func(changed func(string) bool) {
		for _, session := range s.allSessions() {
			name := session.login.UserLogin.Name()
			if session.login.UserLogin.HasEnded() || changed(name) && session.getsMessages() && !ownUsers.Current().Find(name).HasAllPermissions() {
				session.disconnect()
				s.wake(ctx, session)
			}
		}
	})
}
