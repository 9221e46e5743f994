package upstream

import (
	"context"
	"net"
	"time"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// connTimeout limits each call of [Conn.Ask].
const connTimeout = 10 * time.Second

// Conn sends internal commands on one connection with the URL's login, for callers whose commands
// must use the same connection. It does not reconnect after an error. It is not safe for concurrent
// use.
type Conn struct {
	upstream *Upstream
	term     uint64 // the upstream's term before the connection was made
	conn     net.Conn
	in       *resp.Reader
	err      error // the reason why the connection is lost
}

// OpenConn connects to the upstream.
func (u *Upstream) OpenConn(ctx context.Context) (*Conn, error) {
	term := u.Term()
	conn, err := u.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{upstream: u, term: term, conn: conn, in: resp.NewReader(conn, resp.ClientLimits())}, nil
}

// Ask sends commands together, and returns the reply to each: nil, an int64, a string, a
// resp.Error, or a []any of such values. After an error the connection is lost, and each command
// may or may not have taken effect.
func (s *Conn) Ask(ctx context.Context, commands ...[]string) ([]any, error) {
	if s.err != nil {
		return nil, s.err
	}
	replies, err := s.ask(ctx, commands)
	if err != nil {
		s.err = plainCause(err)
		if ctx.Err() != nil {
			s.err = context.Cause(ctx)
		}
		_ = s.conn.Close()
		return nil, s.err
	}
	return replies, nil
}

func (s *Conn) ask(ctx context.Context, commands [][]string) ([]any, error) {
	_ = s.conn.SetDeadline(time.Now().Add(connTimeout))
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	defer stop()
	var frame []byte
	for _, words := range commands {
		frame = resp.AppendWords(frame, words...)
	}
	if _, err := s.conn.Write(frame); err != nil {
		return nil, err
	}
	replies := make([]any, 0, len(commands))
	for range commands {
		s.in.Begin()
		reply, err := s.in.ReadValue()
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// CheckCurrent returns an error if the upstream has failed over since the connection was made, or
// no Sentinel answers.
func (s *Conn) CheckCurrent(ctx context.Context) error {
	if s.upstream.discovery != nil {
		if _, err := s.upstream.findMaster(ctx); err != nil {
			return s.upstream.Failure(err)
		}
	}
	if s.upstream.Term() != s.term {
		return s.upstream.Failure(s.upstream.DisconnectCause())
	}
	return nil
}

// RunID returns the run ID of the current upstream; empty if it is unknown.
func (u *Upstream) RunID(ctx context.Context) string {
	s, err := u.OpenConn(ctx)
	if err != nil {
		return ""
	}
	defer s.Close()
	replies, err := s.Ask(ctx, []string{"INFO", "server"})
	if err != nil {
		return ""
	}
	info, _ := replies[0].(string)
	return redisinfo.Parse(info)["run_id"]
}

// Close closes the connection.
func (s *Conn) Close() error {
	if s.err == nil {
		s.err = net.ErrClosed
	}
	return s.conn.Close()
}
