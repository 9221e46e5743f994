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
	"redlock-proxy/commands/locks/keepalive"
	"redlock-proxy/commands/pubsub"
	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/login"
	"redlock-proxy/proxy/netconn"
)

// session serves one client. It has the goroutine of run and, while a command waits, the goroutine
// of a watch. A parked session has no goroutine.
type session struct {
	// These fields are set once.
	conn        net.Conn
	serverState *serverState
	relay       *relay
	// wake starts the goroutine of a parked session.
	wake func(ctx context.Context, s *session) bool

	// acceptSettings holds the settings with which the client was accepted; nil once the client has
	// been admitted.
	acceptSettings *Settings
	admitted       bool // the client was admitted; belongs to the session's goroutine

	// These fields belong to the session's goroutine. While a watch reads, in's buffer and
	// clientDisconnected belong to the watch.
	in                 *input
	out                command.Reply
	client             command.Client // any goroutine may read ID and LocalAddr; for Addr see clientAddr
	excerpt            []byte         // the beginning of a command that is being discarded
	clientDisconnected bool           // the client disconnected while a command waited
	login              login.Client
	txUser             *acl.User // the user that began a transaction at the upstream

	// activity tells whether the client's connections are idle. Any goroutine may use it.
	activity netconn.Activity

	// writer writes to the client.
	writer clientWriter

	// subscriber holds the client's subscriptions; nil if there are none. Any goroutine may read
	// it.
	subscriber atomic.Pointer[pubsub.Subscriber]

	// mu guards the connection's read deadline, client.Addr and the following fields. Parking,
	// waking and ending a session exclude each other, because each of them locks mu.
	mu            sync.Mutex
	watching      bool // a watch reads from the connection
	parkRequested bool // the session is asked to park
	parked        bool // the session has no goroutine
	// cancelWait ends the wait of a command for other clients; nil before the first wait.
	// noMoreWaits is set if commands may no longer wait.
	cancelWait  context.CancelCauseFunc
	noMoreWaits bool
	// ending is set if the session must end at the next frame that has not begun to arrive. A write
	// requires mu.
	ending atomic.Bool
}

func newSession(
	s *serverState, conn net.Conn, p *netconn.Poller, acceptSettings *Settings, wake func(context.Context, *session) bool,
) *session {
	session := &session{
		conn: conn, serverState: s, wake: wake, acceptSettings: acceptSettings,
		client: command.Client{
			ID: s.proxyState.lastID.Add(1), Proto: 2, ConnectedAt: time.Now(),
			Addr: conn.RemoteAddr(), LocalAddr: conn.LocalAddr(),
		},
	}
	session.out.Now = s.now
	session.beginLogin()
	session.activity.Record()
	session.in = newInput(conn, &session.activity, &s.proxyState.input, session.keptBytes)
	session.writer.init(conn, session.in.conn, &s.proxyState.unreadReplies, session.disconnectUnread)
	var nodes *nodeAddresses
	if s.opts.Nodes != nil {
		_, isTLS := conn.(*tls.Conn)
		nodes = newNodeAddresses(&s.opts, conn.LocalAddr(), isTLS)
		session.client.ListsKey = nodes.listsKey
	}
	session.relay = newRelay(s, session, &session.writer, &session.activity, p, nodes)
	if s.opts.Upstream != nil {
		session.login.PasswordLogin = login.NewPasswordLogin(acceptSettings.ClientPassword)
	}
	return session
}

// clientID, clientAddr, end and disconnect implement relayClient.
func (s *session) clientID() int64 { return s.client.ID }

// keptBytes returns the number of bytes kept for the client between its commands.
func (s *session) keptBytes() int { return s.client.Size() + s.login.Rights.Size() }

// setAddr sets the client's address.
func (s *session) setAddr(addr net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client.Addr = addr
}

// clientAddr returns the client's address; any goroutine may call it.
func (s *session) clientAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client.Addr
}

// end makes the session end at the next frame that has not begun to arrive.
func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending.Store(true)
	s.setReadDeadline()
}

// setReadDeadline makes reads fail if the session must end or park. A watch continues to read, to
// notice if its client leaves. The caller must hold mu.
func (s *session) setReadDeadline() {
	var deadline time.Time
	if (s.ending.Load() || s.parkRequested) && !s.watching {
		deadline = pastDeadline
	}
	_ = s.conn.SetReadDeadline(deadline)
}

// readMore flushes the replies, because the session must wait for the client, and reads.
func (s *session) readMore() error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.endOfInput(s.in.fill())
}

// collect reads the rest of the frame, unless it is too long to buffer.
func (s *session) collect() (whole bool, err error) {
	for {
		ev, err := s.in.nextEventWithin(maxFrame)
		if err != nil || ev == resp.FrameEnd {
			return err == nil, err
		}
		if s.in.size() >= maxFrame {
			return false, nil
		}
		if err := s.readMore(); err != nil {
			return false, err
		}
	}
}

// refuseTooLong answers a command that is too long to buffer; words are its first words.
func (s *session) refuseTooLong(words [][]byte) {
	s.client.Refuse(s.serverState.opts.Table.Route(commands.Situation{TooLong: true}, words).Text, &s.out)
}

// discard discards the rest of the frame as it arrives, and answers the frame from an excerpt of
// its beginning.
func (s *session) discard(answer func(words [][]byte)) error {
	inlineWords := s.in.scanner.InlineArgs() // the scanner drops them at the frame's end
	s.excerpt = s.excerpt[:0]
	for {
		ev, err := s.in.nextEvent()
		s.excerpt = append(s.excerpt, s.in.chunk()[:min(s.in.size(), maxExcerpt-len(s.excerpt))]...)
		s.in.skip()
		if err != nil {
			return err
		}
		if ev == resp.FrameEnd {
			break
		}
		if err := s.readMore(); err != nil {
			return err
		}
	}
	words := inlineWords
	if words == nil {
		words, _ = resp.Excerpt(s.excerpt)
	}
	answer(words)
	return nil
}

// flush writes the replies so far. If the write fails, the locks that the replies grant are
// released when the session ends.
func (s *session) flush() error {
	if len(s.out.Bytes) == 0 {
		s.out.NoteDelivered()
		return nil
	}
	n, err := s.relay.writeOwnReplies(&s.out, s.client.Proto)
	s.out.NoteSent(n)
	if err != nil {
		return errors.Join(errClientDisconnected, err)
	}
	if cap(s.out.Bytes) > maxPending {
		s.out.Bytes = nil
	}
	return nil
}

// clientTracking returns the client's tracking of keys, which lasts until the session is closed.
func (s *session) clientTracking() command.Tracking {
	if s.client.Tracking == nil {
		s.client.Tracking = s.serverState.opts.Table.Tracking().NewClient(s.push)
	}
	return s.client.Tracking
}

// push sends the client, between two replies, the keys that may have changed; without keys, it
// invalidates all keys. Any goroutine may call push.
func (s *session) push(ctx context.Context, keys []string) {
	if s.relay.push(ctx, func() []byte { return tracking.Invalidation(keys) }) != nil {
		_ = s.conn.Close() // the client may have got a part of the message
	}
}

// keptLocks returns the client's kept locks, which last until the session ends. From its first call
// on, the connection ends soon after the client's machine has failed.
func (s *session) keptLocks() command.KeptLocks {
	if s.client.KeptLocks == nil {
		s.in.conn.DetectDeadPeer()
		s.client.KeptLocks = s.serverState.opts.Table.Keeper().NewHolder(keptClient{s})
	}
	return s.client.KeptLocks
}

// keptClient implements keepalive.Client.
type keptClient struct{ session *session }

// HasDisconnected implements keepalive.Client.
func (c keptClient) HasDisconnected() bool { return c.session.in.conn.HasEnded() }

// TakesPushes implements keepalive.Client.
func (c keptClient) TakesPushes() bool { return c.session.relay.takesPushes() }

// Push implements keepalive.Client.
func (c keptClient) Push(ctx context.Context, take func() []byte) {
	if c.session.relay.push(ctx, take) != nil {
		_ = c.session.conn.Close() // the client may have got a part of the message
	}
}

// renewTime limits the last renewal of a client's locks before the proxy closes the connection.
const renewTime = time.Second

// stopRenewal stops renewing the client's locks. If the proxy closes the connection by itself, it
// renews them once more, so that the client has a whole TTL to reconnect, to this or another proxy.
func (s *session) stopRenewal() {
	kept := keepalive.Of(&s.client)
	if s.ending.Load() && !s.clientDisconnected && !s.in.conn.HasEnded() {
		ctx, cancel := context.WithTimeout(context.Background(), renewTime)
		defer cancel()
		kept.RenewOnce(ctx)
	}
	kept.Stop()
}

// subscriptions returns the subscriptions of a lock server's client, which last until the session
// is closed.
func (s *session) subscriptions(ctx context.Context) command.Subscriptions {
	if s.client.Subscriptions == nil {
		subscriber := s.serverState.opts.Table.Messages().NewSubscriber(messageWriter{s, ctx}, s.client.Proto)
		s.client.Subscriptions = subscriber
		s.subscriber.Store(subscriber)
	}
	return s.client.Subscriptions
}

// messageWriter writes messages to the client of a lock server.
type messageWriter struct {
	session   *session
	serverCtx context.Context // the server's context
}

// WriteMessages implements pubsub.ClientWriter.
func (l messageWriter) WriteMessages(take func() []byte) error {
	writer := &l.session.writer
	writer.mu.Lock()
	defer writer.mu.Unlock()
	writer.waitTurn()
	messages := take()
	if len(messages) == 0 {
		return nil
	}
	l.session.relay.deliveries++
	_, err := writer.writeWithin(writeTimeout, messages)
	return err
}

// Disconnect implements pubsub.ClientWriter. It wakes the session, because a parked session would
// not notice the end of its connection.
func (l messageWriter) Disconnect() {
	l.session.disconnect()
	l.session.wake(l.serverCtx, l.session)
}

// beginLogin sets the user that the client has before it logs in.
func (s *session) beginLogin() {
	if u := s.serverState.opts.Users; u != nil {
		s.login.UserLogin = u.NewLogin()
		s.client.Checker = s.login.UserLogin
		s.client.User = s.login.UserLogin.Name()
	}
}

// getsMessages reports whether the client gets messages of subscriptions, of MONITOR or of a
// stream.
func (s *session) getsMessages() bool {
	state := s.relay.state()
	return state.HasSubscriptions() || state.Monitoring || state.Stream || s.subscriber.Load().HasSubscriptions()
}

// errIdle reports that the client is idle, so that its session can be parked.
var errIdle = errors.New("the client is idle")

// endOfInput translates the error of a read. After a read deadline, it returns io.EOF if the
// session must end, and errIdle if the session can be parked. It returns nil if a frame or a reply
// is still pending.
func (s *session) endOfInput(err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case s.ending.Load():
		return io.EOF
	}
	s.clearParkRequest()
	if s.in.isIdle() && len(s.out.Bytes) == 0 {
		return errIdle
	}
	return nil
}

// clearParkRequest marks the request to park as answered. The caller must check afterwards whether
// the session can park, because a request after that check would otherwise be lost.
func (s *session) clearParkRequest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parkRequested = false
	s.setReadDeadline()
}

// disconnect ends the connection immediately. It closes the connection below TLS first, because
// closing TLS would wait until the client reads a notification.
func (s *session) disconnect() {
	if conn, ok := s.conn.(*tls.Conn); ok {
		_ = conn.NetConn().Close()
	}
	_ = s.conn.Close()
}

// disconnectUnread disconnects a client that does not read its replies.
func (s *session) disconnectUnread() {
	s.serverState.proxyState.clientLog.Warn(time.Now(), "client disconnected: it does not read its replies (max-unread-memory)",
		"client", s.conn.RemoteAddr().String())
	s.disconnect()
}
