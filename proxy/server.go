package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/users"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// Options are what a server works with. Table must be set.
type Options struct {
	// Table holds the commands that the proxy answers itself.
	Table *commands.Table
	// Unmoved is the table for as long as the locks are at the Upstream, and Places tell where they are. They are nil where the locks are
	// never moved. Without an upstream there are Places alone: others move the locks, and are told that nothing need be held back here.
	Unmoved *commands.Table
	Places  Places
	// Upstream gets what is not in the table. Without one the proxy is a lock server.
	Upstream *upstream.Upstream
	// ClientPassword, if there is one, is what clients must log in with before they get
	// to the upstream, where the proxy then logs in for them. It is not looked at without
	// an Upstream.
	ClientPassword string
	// Users are those of the proxy's own, whom clients then log in as, here and not at the upstream. It is nil where there are
	// none.
	Users *users.Users
	// TLS are the settings with which clients are spoken to. Without them nothing is encrypted.
	TLS *tls.Config
	// Balancers are networks of load balancers, which say by the PROXY protocol for whom they connect. From elsewhere it is not taken.
	Balancers []netip.Prefix
	// ProtectedMode turns clients from other machines away while nobody has to log in.
	ProtectedMode bool
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

// Settings are what of the [Options] may change while a server runs.
type Settings struct {
	// ClientPassword is that of the Options. A client that is in stays in, as at a Redis whose password is
	// changed; one that has still to log in does so with the new one, or, where there is none any more,
	// with the old one.
	ClientPassword string
	// TLS and ProtectedMode are those of the Options. They are for clients that connect from now on.
	TLS           *tls.Config
	ProtectedMode bool
	// MaxClients is that of the Options. Where more are connected, none is sent away, and none is added.
	MaxClients int
	// DrainTimeout is that of the Options.
	DrainTimeout time.Duration
	// HeldInput is how many bytes all clients together may have held of commands that are not complete, and kept between commands: who would take more is disconnected. Unread is
	// how many of replies they may leave unread: who has done so for longest is disconnected. The defaults are 256 MB each.
	HeldInput, Unread int64
}

// Apply has all of it hold from now on, at once: each client, and each of its commands, meets what was
// before or what is now, and no mixture of them. It may be called at any time, by any goroutine.
func (s *Server) Apply(settings Settings) {
	settings.MaxClients = cmp.Or(settings.MaxClients, defaultMaxClients)
	s.input.limit.Store(cmp.Or(settings.HeldInput, defaultHeldInput))
	s.unread.setLimit(cmp.Or(settings.Unread, defaultUnread))
	s.current.Store(&settings)
}

// settings are those that hold now. They are not changed.
func (s *Server) settings() *Settings { return s.current.Load() }

// MaxClients is how many clients may be connected now.
func (s *Server) MaxClients() int { return s.settings().MaxClients }

// Server serves the clients of one or more listeners.
type Server struct {
	// Of all clients.
	input   budget
	unread  unread
	leavers leavers

	// Set once.
	opts  Options
	quiet time.Duration // quietTime, but in tests
	times relayTimes
	now   func() time.Time // time.Now, but in tests
	// entry bounds the time until a client is in, but in tests entryTime.
	entry time.Duration

	current atomic.Pointer[Settings]

	lastID  atomic.Int64
	clients atomic.Int64
	refused acceptErrors
	// turnedAway are the clients for which there was no room, parked those that are parked.
	turnedAway, parked atomic.Int64
	// detours are the replies that led elsewhere, and were turned.
	detours  atomic.Int64
	detoured complaints
	traffic  traffic
	turned   complaints

	mu       sync.Mutex
	sessions map[int64]*session // by the client's ID
	draining bool

	running sync.WaitGroup // sessions, parked ones too; added to with mu held
}

// NewServer makes a server.
func NewServer(opts Options) *Server {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Server{opts: opts, sessions: map[int64]*session{}, quiet: quietTime, times: relayTimes{stallTime, farewellTime}}
	s.entry, s.now = entryTime, time.Now
	s.leavers.turn = make(chan struct{}, 1)
	s.input.shared = opts.Table.ScriptMemory
	s.Apply(Settings{
		ClientPassword: opts.ClientPassword, TLS: opts.TLS, ProtectedMode: opts.ProtectedMode,
		MaxClients: opts.MaxClients, DrainTimeout: opts.DrainTimeout,
	})
	s.refused.log, s.turned.log, s.detoured.log = opts.Logger, opts.Logger, opts.Logger
	if opts.Upstream != nil {
		opts.Upstream.OnFailover(s.leaveUpstream)
	}
	return s
}

// turn notes that the upstream has sent something that leads to another server, which its client does not get.
func (s *Server) turn(what string) {
	s.detours.Add(1)
	s.detoured.warn(time.Now(), "the upstream led a client to another server, where lock keys are not kept: its client got an error to try again, or no message",
		"upstream", s.opts.Upstream.Name(), "what", what)
}

// Clients is the number of clients connected now.
func (s *Server) Clients() int { return int(s.clients.Load()) }

// Serve serves the clients of ln until ctx ends, and closes ln. Then it drains:
// idle clients are closed at once, commands that wait for what others do are answered with an error, and other
// clients are closed when their commands are done or the DrainTimeout is over. It
// returns nil, or why ln failed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	poller, stopPolling := s.startPolling(base)
	defer stopPolling()
	defer s.followUsers(base)()
	if s.opts.Places != nil {
		defer s.startHolding(base, s.opts.Places)() // also while it drains
	}
	listener := redcon.NewServerNetwork(ln.Addr().Network(), ln.Addr().String(), s.handler(base, poller), nil, nil)
	listener.AcceptError = s.refused.another

	failed := make(chan error, 1)
	go func() { failed <- listener.Serve(&guardListener{Listener: ln, admit: s.admit}) }()
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

// admit counts a client in, if there is room.
func (s *Server) admit() bool {
	if s.clients.Add(1) > int64(s.MaxClients()) {
		s.clients.Add(-1)
		s.turnedAway.Add(1)
		return false
	}
	return true
}

// handler takes each connection out of redcon's hands at its greeting.
func (s *Server) handler(ctx context.Context, p *wire.Poller) func(redcon.Conn, redcon.Command) {
	return func(conn redcon.Conn, _ redcon.Command) {
		guarded := conn.Detach().NetConn().(*guardedConn)
		s.start(ctx, guarded.Conn, p)
	}
}

// start runs a session for a connection, in a goroutine of its own.
func (s *Server) start(ctx context.Context, conn net.Conn, p *wire.Poller) {
	settings := s.settings()
	if settings.TLS != nil {
		conn = tls.Server(conn, settings.TLS)
	}
	session := newSession(s, conn, p, settings)
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

// leaveUpstream has the relays end what they have to an upstream that has failed over, or must not be used. One that is busy with a client that
// does not read keeps no other waiting.
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

// errClientLeft is the cause of a context whose client closed its connection.
var errClientLeft = errors.New("the client left")

// traffic are the bytes and the commands relayed. Each count has a line of the processors' caches to itself.
type traffic struct {
	toUpstream atomic.Int64
	_          [56]byte
	toClients  atomic.Int64
	_          [56]byte
	commands   atomic.Int64
}

// Counts are what a server has counted since it was made, and its clients of now.
type Counts struct {
	// Accepted are the clients that were admitted, Refused those turned away because there
	// were as many as MaxClients, AcceptErrors those that the system could not give.
	Accepted, Refused, AcceptErrors int64
	// Connected are the clients of now, Parked those of them that are quiet and cost no
	// goroutine.
	Connected, Parked int64
	// ToUpstream and ToClients are the bytes relayed. What the proxy asks an upstream for itself
	// on a client's connection counts as sent, and its answer does not.
	ToUpstream, ToClients int64
	// Relayed are the commands of clients sent to the upstream, but for those that are not answered
	// (CLIENT REPLY OFF).
	Relayed int64
	// HeldInput are the bytes that are held of commands that are not complete, beyond the first of each client, and kept between commands; RefusedInput counts the
	// clients that were sent away because there were too many.
	HeldInput, RefusedInput int64
	// Unread are the bytes of replies that wait for clients to read; CutUnread counts the clients that were disconnected because there were
	// too many.
	Unread, CutUnread int64
	// Messages are the bytes of messages that wait for subscribers of a lock server; CutMessages counts the subscribers that were disconnected
	// because there were too many.
	Messages, CutMessages int64
	// Detours are replies and messages of the upstream that led clients to other servers, and did not reach them.
	Detours int64
}

// Counts are those of now.
func (s *Server) Counts() Counts {
	unread, cut := s.unread.now()
	messages, cutMessages := s.opts.Table.Messages().Backlog()
	return Counts{
		Accepted: s.lastID.Load(), Refused: s.turnedAway.Load(), AcceptErrors: s.AcceptErrors(),
		Connected: s.clients.Load(), Parked: s.parked.Load(),
		ToUpstream: s.traffic.toUpstream.Load(), ToClients: s.traffic.toClients.Load(),
		Relayed: s.traffic.commands.Load(), Detours: s.detours.Load(),
		HeldInput: s.input.now(), RefusedInput: s.input.refused.Load(), Unread: unread, CutUnread: cut,
		Messages: messages, CutMessages: cutMessages,
	}
}
