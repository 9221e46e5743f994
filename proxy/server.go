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

	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/wire"
)

// Apply has all of it hold from now on, at once: each client, and each of its commands, meets what
// was before or what is now, and no mixture of them. It may be called at any time, by any
// goroutine.
func (s *Server) Apply(settings Settings) {
	settings.MaxClients = cmp.Or(settings.MaxClients, defaultMaxClients)
	s.shared.input.limit.Store(cmp.Or(settings.HeldInput, defaultHeldInput))
	s.shared.unread.setLimit(cmp.Or(settings.Unread, defaultUnread))
	s.shared.current.Store(&settings)
}

// MaxClients is how many clients may be connected now.
func (s *Server) MaxClients() int { return s.shared.settings().MaxClients }

// Server serves the clients of one or more listeners.
type Server struct {
	shared shared
	quiet  time.Duration                        // quietTime, but in tests; set once
	waker  func(context.Context, *session) bool // wake, for all sessions

	clients atomic.Int64
	refused acceptErrors
	// turnedAway are the clients for which there was no room.
	turnedAway atomic.Int64

	mu       sync.Mutex
	sessions map[int64]*session // by the client's ID
	draining bool

	running sync.WaitGroup // sessions, parked ones too; added to with mu held
}

// NewServer makes a server.
func NewServer(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{sessions: map[int64]*session{}, quiet: quietTime}
	s.shared.opts, s.shared.times, s.shared.entry, s.shared.now = opts, relayTimes{stallTime, farewellTime}, entryTime, time.Now
	s.shared.untracked = track.NewTracker(0, false)
	s.waker = s.wake
	s.shared.leavers.turn = make(chan struct{}, 1)
	s.shared.input.shared = opts.Table.ScriptMemory
	s.Apply(Settings{
		ClientPassword: opts.ClientPassword, TLS: opts.TLS, ProtectedMode: opts.ProtectedMode,
		MaxClients: opts.MaxClients, DrainTimeout: opts.DrainTimeout,
	})
	s.refused.log, s.shared.turned.log, s.shared.detoured.log = opts.Logger, opts.Logger, opts.Logger
	if opts.Upstream != nil {
		opts.Upstream.OnFailover(s.leaveUpstream)
	}
	return s
}

// Clients is the number of clients connected now.
func (s *Server) Clients() int { return int(s.clients.Load()) }

// start runs a session for a connection, in a goroutine of its own.
func (s *Server) start(ctx context.Context, conn net.Conn, p *wire.Poller) {
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
	session.in.wire.Join(p, wire.TagOf(session.client.ID, 0)) // of whom the poller asks for by now
	s.running.Add(1)
	go s.run(ctx, session)
}

// run is a session's goroutine, from its start, or from when it is woken, until it
// ends or is parked.
func (s *Server) run(ctx context.Context, session *session) {
	if !session.run(ctx) {
		s.ended(session)
		s.running.Done()
	}
}

func (s *Server) ended(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session.client.ID)
	s.clients.Add(-1)
}

// leaveUpstream has the relays end what they have to an upstream that has failed over, or must not
// be used. One that is busy with a client that does not read keeps no other waiting.
func (s *Server) leaveUpstream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		s.running.Go(func() {
			session.relay.leave()
		})
	}
}

// close takes no more sessions, and gives those that there are.
func (s *Server) close() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	return slices.Collect(maps.Values(s.sessions))
}

// all are the sessions of now.
func (s *Server) all() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.sessions))
}

// wake starts a session's goroutine again, if the session is parked.
func (s *Server) wake(ctx context.Context, session *session) bool {
	woken := session.unpark()
	if woken {
		go s.run(ctx, session)
	}
	return woken
}

// IsProtected reports whether clients from other machines are turned away now.
func (s *Server) IsProtected() bool { return s.shared.protects(s.shared.settings()) }

// ends are the ends that are not empty, of all these sessions.
func ends(sessions []*session, end func(*relay) string) (addresses []string) {
	for _, session := range sessions {
		if address := end(session.relay); address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// followUsers ends the connections of clients that are nobody any more, or that may not go on to
// hear what they hear, until stop is called.
func (s *Server) followUsers(ctx context.Context) (stop func()) {
	own := s.shared.opts.Users
	if own == nil {
		return func() {}
	}
	return own.Watch(func(changed func(string) bool) {
		for _, session := range s.all() {
			name := session.who.Own.Name()
			if session.who.Own.Ended() || changed(name) && session.hears() && !own.Now().Find(name).MayAll() {
				session.cut()
				s.wake(ctx, session)
			}
		}
	})
}
