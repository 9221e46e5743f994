package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/commands"
	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/wire"
)

// session serves one client. One goroutine at a time is the session's: the one that run was
// started in, or, while a command waits, that one and a watch. A parked
// session has none.
type session struct {
	// Set once.
	conn   net.Conn
	shared *shared
	relay  *relay
	// wake starts the goroutine of a session that is parked.
	wake func(ctx context.Context, s *session) bool

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
	subscriber atomic.Pointer[pubsub.Subscriber]

	// mu is of the connection's read deadline, and decides between park, wake and end.
	mu       sync.Mutex
	watching bool // a watch reads from the connection
	asked    bool // the session was asked to rest
	parked   bool // the session has no goroutine
	// refuse ends the wait of a command for what others do; nil before the first one. refusing:
	// there are none any more.
	refuse   context.CancelCauseFunc
	refusing bool
	// ending: the session is to end at the next frame that has not begun to arrive. Written
	// with mu held.
	ending atomic.Bool
}

func newSession(s *shared, conn net.Conn, p *wire.Poller, acceptedWith *Settings, wake func(context.Context, *session) bool) *session {
	session := &session{
		conn: conn, shared: s, wake: wake, acceptedWith: acceptedWith,
		client: command.Client{
			ID: s.lastID.Add(1), Proto: 2, Since: time.Now(),
			Addr: conn.RemoteAddr(), LocalAddr: conn.LocalAddr(),
		},
	}
	session.out.Now = s.now
	session.beginLogin()
	session.activity.Happened()
	session.in = newInput(conn, &session.activity, &s.input, session.kept)
	session.line.init(conn, session.in.wire, &s.unread, session.cutUnread)
	session.relay = newRelay(s, session, &session.line, &session.activity, p)
	if s.opts.Upstream != nil {
		session.who.Gate = login.NewGate(acceptedWith.ClientPassword)
	}
	return session
}

// number is of relayClient, as origin and end are.
func (s *session) number() int64 { return s.client.ID }

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
	s.client.Refuse(s.shared.opts.Table.Route(commands.Situation{TooLong: true}, words).Text, &s.out)
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

// flush writes the replies so far. What the replies tell of that a failed write leaves behind, in
// part or as a whole, is undone when the session ends.
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
func (s *session) track() command.Tracking {
	if s.client.Tracking == nil {
		s.client.Tracking = s.shared.opts.Table.Tracking().Client(s.push)
	}
	return s.client.Tracking
}

// push tells the client, between two replies, of keys that may have changed, or of all. Any
// goroutine may call it.
func (s *session) push(ctx context.Context, keys []string) {
	if s.relay.push(ctx, tracking.Invalidation(keys)) != nil {
		_ = s.conn.Close() // it may have got a part
	}
}

// subscribe is what the client of a lock server is subscribed to, until the session is closed.
func (s *session) subscribe(ctx context.Context) command.Subscriptions {
	if s.client.Subscriptions == nil {
		subscriber := s.shared.opts.Table.Messages().Subscriber(messageLine{s, ctx}, s.client.Proto)
		s.client.Subscriptions = subscriber
		s.subscriber.Store(subscriber)
	}
	return s.client.Subscriptions
}

// messageLine is the way of messages to the client of a lock server.
type messageLine struct {
	session *session
	serving context.Context // that of the server
}

// WriteMessages is of pubsub.Line.
func (l messageLine) WriteMessages(take func() []byte) error {
	line := &l.session.line
	line.mu.Lock()
	defer line.mu.Unlock()
	line.turn()
	messages := take()
	if len(messages) == 0 {
		return nil
	}
	l.session.relay.brought++
	_, err := line.writeWithin(writeTimeout, messages)
	return err
}

// Cut is of pubsub.Line. A session that is parked learns of it only if it is woken.
func (l messageLine) Cut() {
	l.session.cut()
	l.session.wake(l.serving, l.session)
}

// beginLogin has the client be who it is before it has said anything.
func (s *session) beginLogin() {
	if u := s.shared.opts.Users; u != nil {
		s.who.Own = u.Begin()
		s.client.Judge = s.who.Own
		s.client.User = s.who.Own.Name()
	}
}

// hears reports whether the client gets what it does not ask for one by one.
func (s *session) hears() bool {
	state := s.relay.know()
	return state.Listening() || state.Monitoring || state.Stream || s.subscriber.Load().Any()
}

// errAtRest ends a session's goroutine, or would: the session may be parked.
var errAtRest = errors.New("the client is quiet")

// endOfInput takes the deadline by which a session is told to end for the end of
// the client's bytes. One by which it is asked to rest is none where it is not
// between two frames.
func (s *session) endOfInput(err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case s.ending.Load():
		return io.EOF
	}
	s.heard()
	if s.in.atRest() && len(s.out.Bytes) == 0 {
		return errAtRest
	}
	return nil
}

// heard takes the question to rest for answered. That is done before the answer is
// found, or one that is asked meanwhile would be lost.
func (s *session) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = false
	s.setReadDeadline()
}

// cut ends the connection at once. TLS would say farewell, and wait until that is taken.
func (s *session) cut() {
	if conn, ok := s.conn.(*tls.Conn); ok {
		_ = conn.NetConn().Close()
	}
	_ = s.conn.Close()
}

// cutUnread is cut for a client that does not take its replies.
func (s *session) cutUnread() {
	s.shared.turned.warn(time.Now(), "a client that does not take its replies is disconnected (max-unread-memory)", "client", s.conn.RemoteAddr().String())
	s.cut()
}
