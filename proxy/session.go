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
)

const (
	// writeTimeout is how long a client may leave its replies unread.
	writeTimeout = time.Minute
	// maxPending is how much is written together.
	maxPending = 16 << 10
)

// session serves one client.
type session struct {
	conn    net.Conn
	table   *commands.Table
	log     *slog.Logger
	in      *input
	out     commands.Reply
	client  commands.Client
	excerpt []byte // of a command that is being thrown away
	left    bool   // the client left while a command waited
	relay   *relay // nil without an upstream
	// blocking: a command that may block was forwarded since the upstream was quiet.
	blocking bool
	poller   *poller // nil: sessions are not parked
	stir     stir

	mu       sync.Mutex // of the connection's read deadline
	watching bool       // a watch reads from the connection
	asked    bool       // the session was asked to rest
	parked   bool       // the session has no goroutine
	// ending: the session is to end at the next frame that has not begun to arrive.
	ending atomic.Bool
}

func newSession(s *Server, conn net.Conn, p *poller) *session {
	session := &session{
		conn: conn, table: s.opts.Table, log: s.opts.Logger, poller: p,
		client: commands.Client{
			ID: s.lastID.Add(1), Proto: 2, Since: time.Now(),
			Addr: conn.RemoteAddr(), LocalAddr: conn.LocalAddr(),
		},
	}
	session.stir.happened()
	session.in = newInput(conn, &session.stir)
	if s.opts.Upstream != nil {
		session.relay = newRelay(s.opts.Upstream, session)
	}
	return session
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
	s.resume(ctx)
	err := s.converse(ctx)
	for errors.Is(err, errAtRest) {
		if s.park(ctx) {
			return true
		}
		err = s.converse(ctx)
	}
	var protocol *ProtocolError
	if errors.As(err, &protocol) {
		s.client.Refuse("ERR "+protocol.Error(), &s.out)
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
	s.in.release()
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
	for !s.client.Closing {
		ev, err := s.in.event()
		switch {
		case err != nil:
			return err
		case ev == frameName:
			err = s.command(ctx)
		case ev == frameEmpty:
			s.in.skip()
		case ev == frameMore:
			err = s.more()
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

// command handles the command whose name has just been scanned.
func (s *session) command(ctx context.Context) error {
	if name, long := s.in.scanner.name(); long || !s.table.Known(name) {
		s.client.AbortMulti()
		return s.discard(s.table.Unknown)
	}
	whole, err := s.collect()
	if err != nil {
		return err
	}
	if !whole {
		s.client.AbortMulti()
		return s.discard(tooLong)
	}
	words, err := s.in.words()
	if err != nil {
		return err
	}
	s.table.Run(ctx, s.table.Serve(&s.client, words), &s.client, words, &s.out)
	s.in.skip()
	if s.left {
		return errClientLeft
	}
	return nil
}

// collect reads the rest of the frame, unless it is too long to be held.
func (s *session) collect() (whole bool, err error) {
	for {
		ev, err := s.in.eventWithin(maxFrame)
		if err != nil || ev == frameEnd {
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

// tooLong answers a command of ours that would not be held.
func tooLong(c *commands.Client, _ [][]byte, out *commands.Reply) {
	c.Refuse("ERR command too long: the proxy takes 1048576 bytes for a command of its own", out)
}

// discard throws the rest of the frame away as it comes, and answers it from an
// excerpt of its beginning.
func (s *session) discard(answer func(*commands.Client, [][]byte, *commands.Reply)) error {
	inline := s.in.scanner.inlineArgs() // gone with the end of the frame
	s.excerpt = s.excerpt[:0]
	for {
		ev, err := s.in.event()
		s.excerpt = append(s.excerpt, s.in.chunk()[:min(s.in.size(), maxExcerpt-len(s.excerpt))]...)
		s.in.skip()
		if err != nil {
			return err
		}
		if ev == frameEnd {
			break
		}
		if err := s.more(); err != nil {
			return err
		}
	}
	words := inline
	if words == nil {
		words = excerptWords(s.excerpt)
	}
	answer(&s.client, words, &s.out)
	return nil
}

// flush writes the replies so far. What a failed write leaves undone is undone
// when the session ends.
func (s *session) flush() error {
	if len(s.out.Bytes) == 0 {
		s.out.Delivered()
		return nil
	}
	if err := s.write(s.out.Bytes); err != nil {
		return errors.Join(errClientLeft, err)
	}
	s.out.Delivered()
	if cap(s.out.Bytes) > maxPending {
		s.out.Bytes = nil
	}
	return nil
}

func (s *session) write(p []byte) error {
	if s.relay != nil {
		return s.relay.write(p)
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.in.wire.Write(p)
	return err
}
