package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/pubsub/subscribers"
	"redlock-proxy/commands/tracking"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/wire"
)

const (
	// writeTimeout is how long a client may leave its replies unread.
	writeTimeout = time.Minute
	// maxPending is how much is written together.
	maxPending = 16 << 10
)

// session serves one client. One goroutine at a time is the session's: the one that run was
// started in, or, while a command waits, that one and a watch. A parked
// session has none.
type session struct {
	// Set once.
	conn        net.Conn
	server      *Server
	table       *commands.Table
	log         *slog.Logger
	relay       *relay
	poller      *wire.Poller  // nil: sessions are not parked
	parkedCount *atomic.Int64 // counts those of the server that are parked

	// acceptedWith are the settings with which the client was accepted; nil once it has entered.
	acceptedWith *Settings
	entered      bool // TLS is spoken, and protected mode lets the client in; of the session's goroutine

	// The session's goroutine. While a watch reads, in's buffer and left are the watch's.
	in      *input
	out     command.Reply
	client  command.Client // ID and LocalAddr are set once, and read by others; Addr by origin
	excerpt []byte         // of a command that is being thrown away
	left    bool           // the client left while a command waited
	who     login.Client
	txUser  *acl.User // who the client was when a transaction began at the upstream

	// Any goroutine.
	activity wire.Activity

	// line is the way to the client.
	line line

	// subscriber is the client's Subscriptions, for any goroutine.
	subscriber atomic.Pointer[subscribers.Subscriber]

	// mu is of the connection's read deadline, and decides between park, wake and end.
	mu       sync.Mutex
	watching bool // a watch reads from the connection
	asked    bool // the session was asked to rest
	parked   bool // the session has no goroutine
	// refuse ends the wait of a command for what others do; nil before the first one. refusing: there are none any more.
	refuse   context.CancelCauseFunc
	refusing bool
	// ending: the session is to end at the next frame that has not begun to arrive. Written
	// with mu held.
	ending atomic.Bool
}

func newSession(s *Server, conn net.Conn, p *wire.Poller, acceptedWith *Settings) *session {
	session := &session{
		conn: conn, server: s, table: s.opts.Table, log: s.opts.Logger, poller: p, parkedCount: &s.parked, acceptedWith: acceptedWith,
		client: command.Client{
			ID: s.lastID.Add(1), Proto: 2, Since: time.Now(),
			Addr: conn.RemoteAddr(), LocalAddr: conn.LocalAddr(),
		},
	}
	session.out.Now = s.now
	session.identify()
	session.activity.Happened()
	session.in = newInput(conn, &session.activity, &s.input, session.kept)
	session.line.init(conn, session.in.wire, &s.unread, session.cutUnread)
	session.relay = newRelay(s.opts.Upstream, session, &s.times, &s.traffic)
	if s.opts.Upstream != nil {
		session.who.Gate = login.NewGate(acceptedWith.ClientPassword)
	}
	return session
}

// kept returns how many bytes are kept for the client between its commands.
func (s *session) kept() int { return s.client.Kept() + s.who.Rights.Kept() }

// setAddr takes an address for the client's.
func (s *session) setAddr(addr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.Addr = addr
}

// origin is the client's address, for goroutines that are not the session's.
func (s *session) origin() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.Addr
}

// run serves the client until it leaves, errs, or ctx ends, or until it is parked. A
// panic costs this client its connection, and no other.
func (s *session) run(ctx context.Context) (parked bool) {
	defer func() {
		if !parked {
			s.close()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a session failed", "client", s.client.Addr, "panic", p, "stack", string(debug.Stack()))
			s.out.Undelivered()
		}
	}()
	if !s.entered {
		if s.server.enter(ctx, s) != nil {
			return false
		}
		s.entered, s.acceptedWith = true, nil
	}
	s.resume(ctx)
	own, end := context.WithCancelCause(ctx) // one that no other session waits on: each wait locks its channel
	defer end(nil)
	err := s.serve(own)
	for errors.Is(err, errAtRest) {
		if s.park(ctx) {
			return true
		}
		err = s.serve(own)
	}
	if protocol, ok := errors.AsType[*resp.RequestError](err); ok {
		s.client.Refuse("ERR "+protocol.Error(), &s.out)
	}
	if errors.Is(err, resp.ErrTLS) {
		s.server.turned.warn(time.Now(), "a client speaks TLS, which this port does not (tls-cert)", "client", s.client.Addr.String())
	}
	if !errors.Is(err, errClientLeft) {
		_ = s.flush()
	}
	s.out.Undelivered()
	s.partFromUpstream(ctx, err)
	return false
}

func (s *session) close() {
	s.relay.close()
	s.client.Tracking.Close()
	s.client.Subscriptions.Close()
	s.in.close()
}

// end has the session end at the next frame that has not begun to arrive.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending.Store(true)
	s.setReadDeadline()
}

// setReadDeadline has reads fail where the session is to end or to rest. A watch goes
// on even then: its client may leave. It is called with mu held.
func (s *session) setReadDeadline() {
	var deadline time.Time
	if (s.ending.Load() || s.asked) && !s.watching {
		deadline = longAgo
	}
	_ = s.conn.SetReadDeadline(deadline)
}

// more flushes the replies, since nothing can be done without more from the client,
// and reads.
func (s *session) more() error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.endOfInput(s.in.fill())
}

// collect reads the rest of the frame, unless it is too long to be held.
func (s *session) collect() (whole bool, err error) {
	for {
		ev, err := s.in.eventWithin(maxFrame)
		if err != nil || ev == resp.FrameEnd {
			return err == nil, err
		}
		if s.in.size() >= maxFrame {
			return false, nil
		}
		if err := s.more(); err != nil {
			return false, err
		}
	}
}

// refuseTooLong answers a command that is too long to be held, of which these are the first words.
func (s *session) refuseTooLong(words [][]byte) {
	s.client.Refuse(s.table.Route(commands.Situation{TooLong: true}, words).Text, &s.out)
}

// discard throws the rest of the frame away as it comes, and answers it from an
// excerpt of its beginning.
func (s *session) discard(answer func(words [][]byte)) error {
	inline := s.in.scanner.InlineArgs() // gone with the end of the frame
	s.excerpt = s.excerpt[:0]
	for {
		ev, err := s.in.event()
		s.excerpt = append(s.excerpt, s.in.chunk()[:min(s.in.size(), maxExcerpt-len(s.excerpt))]...)
		s.in.skip()
		if err != nil {
			return err
		}
		if ev == resp.FrameEnd {
			break
		}
		if err := s.more(); err != nil {
			return err
		}
	}
	words := inline
	if words == nil {
		words, _ = resp.Excerpt(s.excerpt)
	}
	answer(words)
	return nil
}

// flush writes the replies so far. What the replies tell of that a failed write leaves behind, in part or as a whole, is undone when the
// session ends.
func (s *session) flush() error {
	if len(s.out.Bytes) == 0 {
		s.out.Delivered()
		return nil
	}
	n, err := s.relay.reply(&s.out, s.client.Proto)
	s.out.Handed(n)
	if err != nil {
		return errors.Join(errClientLeft, err)
	}
	if cap(s.out.Bytes) > maxPending {
		s.out.Bytes = nil
	}
	return nil
}

// track is what the client tracks, until the session is closed.
func (s *session) track() *tracking.Client {
	if s.client.Tracking == nil {
		s.client.Tracking = s.table.Tracking().Client(s.push)
	}
	return s.client.Tracking
}

// push tells the client, between two replies, of keys that may have changed, or of all. Any goroutine may call it.
func (s *session) push(ctx context.Context, keys []string) {
	if s.relay.push(ctx, tracking.Invalidation(keys)) != nil {
		_ = s.conn.Close() // it may have got a part
	}
}

// subscribe is what the client of a lock server is subscribed to, until the session is closed.
func (s *session) subscribe(ctx context.Context) *subscribers.Subscriber {
	if s.client.Subscriptions == nil {
		s.client.Subscriptions = s.client.Hub.Subscriber(messageLine{s, ctx}, s.client.Proto)
		s.subscriber.Store(s.client.Subscriptions)
	}
	return s.client.Subscriptions
}

// messageLine is the way of messages to the client of a lock server.
type messageLine struct {
	*session
	serving context.Context // that of the server
}

// WriteMessages is of subscribers.Line.
func (l messageLine) WriteMessages(take func() []byte) error {
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	l.line.turn()
	messages := take()
	if len(messages) == 0 {
		return nil
	}
	l.relay.brought++
	_, err := l.line.writeWithin(writeTimeout, messages)
	return err
}

// Cut is of subscribers.Line. A session that is parked learns of it only if it is woken.
func (l messageLine) Cut() {
	l.cut()
	l.server.wake(l.serving, l.session)
}
