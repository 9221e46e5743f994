package feed

import (
	"errors"
	"net"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
)

// What ends a Line whose master does not keep to the protocol.
var (
	// ErrAnswer is the cause where a master answers otherwise than was asked.
	ErrAnswer = errors.New("it answers otherwise than was asked")
	// ErrUnasked is the cause where a master reports what nobody asked it to report.
	ErrUnasked = errors.New("it reports what was not asked for")
)

// Line is the connection of a feed: one goroutine reads it, another one writes.
type Line struct {
	net.Conn
	// Due has one signal: there is something to write.
	Due chan struct{}
	// Ended is closed by End.
	Ended chan struct{}
	// In reads what the master sends.
	In *resp.Reader

	once sync.Once
}

// NewLine makes one; limits bound what a master sends at once.
func NewLine(conn net.Conn, limits resp.Limits) *Line {
	return &Line{Conn: conn, Due: make(chan struct{}, 1), Ended: make(chan struct{}), In: resp.NewReader3(conn, limits)}
}

// End closes the connection, and has both goroutines end.
func (l *Line) End() {
	l.once.Do(func() {
		close(l.Ended)
		_ = l.Close()
	})
}

// Prompt gives the signal that there is something to write.
func (l *Line) Prompt() {
	select {
	case l.Due <- struct{}{}:
	default:
	}
}

// Greet has a master speak RESP3, and do a command, of which the answer is of that kind, within a
// time. A refusal is the master's own error.
func Greet(conn net.Conn, in *resp.Reader, within time.Duration, kind resp.Kind, command ...string) error {
	_ = conn.SetDeadline(time.Now().Add(within))
	if _, err := conn.Write(resp.AppendWords(resp.AppendWords(nil, "HELLO", "3"), command...)); err != nil {
		return err
	}
	for _, want := range []resp.Kind{resp.Map, kind} {
		said, is, err := Next(in)
		refusal, refused := said.(resp.Error)
		switch {
		case err != nil:
			return err
		case refused:
			return refusal
		case is != want:
			return ErrAnswer
		}
	}
	_ = conn.SetDeadline(time.Time{})
	return nil
}

// Next reads one thing that a master sends, and of what kind it is.
func Next(in *resp.Reader) (said any, is resp.Kind, err error) {
	in.Begin()
	first, err := in.Next()
	if err != nil {
		return nil, 0, err
	}
	said, err = in.ValueOf(first)
	return said, first.Kind, err
}
