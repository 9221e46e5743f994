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
	"redlock-proxy/commands/catalog/syntax"
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
	relay       *relay        // nil without an upstream
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
	named   bool           // the name of a command was scanned that is still to be handled
	ended   bool           // the end of its frame, too
	who     login.Client
	txUser  *acl.User // who the client was when a transaction began at the upstream

	// Any goroutine.
	activity wire.Activity

	// line is the way to the client; its mu is of proto, too, which the client of a lock server speaks.
	line  line
	proto int

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
	if s.opts.Upstream != nil {
		session.relay = newRelay(s.opts.Upstream, session, &s.times, &s.traffic)
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
	err := s.converse(ctx)
	for errors.Is(err, errAtRest) {
		if s.park(ctx) {
			return true
		}
		err = s.converse(ctx)
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
	if s.relay != nil {
		s.partFromUpstream(ctx, err)
	}
	return false
}

func (s *session) close() {
	if s.relay != nil {
		s.relay.close()
	}
	_ = s.conn.Close()
	s.client.Tracking.Close()
	s.client.Subscriptions.Close()
	s.in.close()
}

func (s *session) converse(ctx context.Context) error {
	if s.relay != nil {
		return s.serveRelay(ctx)
	}
	return s.serve(ctx)
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

// serve runs command after command. It returns io.EOF when the client has left.
func (s *session) serve(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx) // one that no other session waits on: each wait locks its channel
	defer end(nil)
	for !s.client.Closing {
		ev, err := resp.FrameName, error(nil)
		if !s.named {
			ev, err = s.in.event()
		}
		switch {
		case err != nil:
			return err
		case ev == resp.FrameName:
			s.named = false
			err = s.command(ctx)
		case ev == resp.FrameEmpty:
			s.in.skip()
		case ev == resp.FrameMore:
			err = s.await(ctx)
		}
		if err == nil && len(s.out.Bytes) > maxPending {
			err = s.flush()
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// more flushes the replies, since nothing can be done without more from the client,
// and reads.
func (s *session) more() error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.endOfInput(s.in.fill())
}

// await flushes the replies, and waits for the client. What is brief is handled as it comes, so that the
// system need not be asked each time whether there is more: see wire.Conn.Pump.
func (s *session) await(ctx context.Context) error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.in.makeRoom(); err != nil {
		return err
	}
	var failed error
	err := s.in.wire.Pump(func(n int) (more bool) {
		s.in.end += n
		if more, failed = s.briefly(ctx); more {
			failed = s.flush()
		}
		if failed != nil || !more {
			return false
		}
		failed = s.in.makeRoom()
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return s.endOfInput(err)
}

// briefly handles commands that are brief and were read whole. It reports whether nothing else is left to
// be done before there is more from the client; else serve goes on.
func (s *session) briefly(ctx context.Context) (more bool, err error) {
	for !s.client.Closing && ctx.Err() == nil && len(s.out.Bytes) <= maxPending {
		ev, err := s.in.event()
		switch {
		case err != nil:
			return false, err
		case ev == resp.FrameMore:
			return true, nil
		case ev == resp.FrameEmpty:
			s.in.skip()
		case ev == resp.FrameName:
			if done, err := s.brief(ctx); !done || err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// brief handles the command whose name has just been scanned, if it is brief and was read whole.
func (s *session) brief(ctx context.Context) (done bool, err error) {
	name, _ := s.in.scanner.Name()
	cmd := s.table.Lookup(name)
	if s.named = true; cmd == nil || cmd.Brief == nil || s.who.Own != nil || s.client.Transaction.Open {
		return false, nil
	}
	if ev, err := s.in.eventWithin(maxFrame); err != nil || ev != resp.FrameEnd {
		return false, err
	}
	words, err := s.in.words()
	if s.ended = true; err != nil || !cmd.Brief(words) {
		return false, err
	}
	s.named, s.ended = false, false
	return true, s.perform(ctx, words)
}

// perform has a whole command answered. A validity counts from when its reply leaves, so that leaves before the next command is begun.
func (s *session) perform(ctx context.Context, words [][]byte) error {
	tx := &s.client.Transaction
	d := s.table.Route(commands.Situation{InMulti: tx.Open, Watching: tx.Watching()}, words)
	if err := s.carryOut(d.Command, command.Call{Ctx: ctx, Client: &s.client, Args: words, Out: &s.out}); err != nil {
		return err
	}
	if d.Command.Name != "client" && !tx.Open {
		s.client.Tracking.Used()
	}
	s.in.skip()
	switch {
	case s.left:
		return errClientLeft
	case s.out.IsUrgent():
		return s.flush()
	}
	return nil
}

// command handles the command whose name has just been scanned.
func (s *session) command(ctx context.Context) error {
	if turned, err := s.turnAway(); turned || err != nil {
		return err
	}
	if name, long := s.in.scanner.Name(); long || s.table.Lookup(name) == nil && s.table.Keyed(name) == nil {
		s.client.Transaction.Abort()
		return s.discard(func(words [][]byte) { s.client.Refuse(syntax.UnknownCommand(words), &s.out) })
	}
	whole, err := s.collect()
	if err != nil {
		return err
	}
	if !whole {
		s.client.Transaction.Abort()
		return s.discard(s.refuseTooLong)
	}
	words, err := s.in.words()
	if err != nil {
		return err
	}
	if s.who.Own != nil {
		s.in.scanner.SetLimits(resp.DefaultRequestLimits())
		if words, err = s.admitted(ctx, words); err != nil || words == nil {
			s.in.skip()
			return err
		}
	}
	return s.perform(ctx, words)
}

// collect reads the rest of the frame, unless it is too long to be held.
func (s *session) collect() (whole bool, err error) {
	if s.ended {
		s.ended = false
		return true, nil
	}
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
	n, err := s.write(&s.out)
	s.out.Handed(n)
	if err != nil {
		return errors.Join(errClientLeft, err)
	}
	if cap(s.out.Bytes) > maxPending {
		s.out.Bytes = nil
	}
	return nil
}

// write writes the replies, and tells how many bytes the client's socket took of them.
func (s *session) write(out *command.Reply) (n int, err error) {
	if s.relay != nil {
		return s.relay.reply(out)
	}
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.line.turn()
	s.proto = s.client.Proto
	out.Leaves()
	return s.line.writeReplies(writeTimeout, out.Bytes)
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
	message, err := tracking.Invalidation(keys), error(nil)
	if s.relay != nil {
		err = s.relay.push(ctx, message)
	} else {
		err = s.pushHere(message)
	}
	if err != nil {
		_ = s.conn.Close() // it may have got a part
	}
}

// pushHere is push to the client of a lock server.
func (s *session) pushHere(message []byte) error {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	s.line.turn()
	if s.proto != 3 {
		return nil
	}
	_, err := s.line.writeWithin(writeTimeout, message)
	return err
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
	_, err := l.line.writeWithin(writeTimeout, messages)
	return err
}

// Cut is of subscribers.Line. A session that is parked learns of it only if it is woken.
func (l messageLine) Cut() {
	l.cut()
	l.server.wake(l.serving, l.session)
}
