package upstream

import (
	"context"
	"net"
	"time"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/internal/resp"
)

// singleTimeout bounds what is asked at once on a [Single]: each of these commands is quick.
const singleTimeout = 10 * time.Second

// Single is one connection of the proxy's own, with the URL's login, for who needs to know that it
// has one and the same: when it is lost, or anything on it fails, it is not made again. It is for
// one goroutine.
type Single struct {
	conn net.Conn
	in   *resp.Reader
	err  error // why it is lost
}

// Single makes one.
func (u *Upstream) Single(ctx context.Context) (*Single, error) {
	conn, err := u.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Single{conn: conn, in: resp.NewReader(conn, resp.Client())}, nil
}

// Ask sends commands at once, and returns the reply to each: nil, an int64, a string, a resp.Error,
// or a []any of these. After an error the connection is lost, and it is not known which commands
// were carried out.
func (s *Single) Ask(ctx context.Context, commands ...[]string) ([]any, error) {
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

func (s *Single) ask(ctx context.Context, commands [][]string) ([]any, error) {
	_ = s.conn.SetDeadline(time.Now().Add(singleTimeout))
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
		reply, err := s.in.Value()
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// RunID is that of the server which the upstream is now; empty where it does not tell.
func (u *Upstream) RunID(ctx context.Context) string {
	s, err := u.Single(ctx)
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

// Close closes it.
func (s *Single) Close() error {
	if s.err == nil {
		s.err = net.ErrClosed
	}
	return s.conn.Close()
}
