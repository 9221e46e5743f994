package pushconn

import (
	"errors"
	"net"
	"sync"
	"time"

	"redlock-proxy/internal/resp"
)

// ErrUnexpectedReply and ErrUnsolicited end a Connection whose master violates the protocol.
var (
	// ErrUnexpectedReply means that a master sent an unexpected reply.
	ErrUnexpectedReply = errors.New("it sent an unexpected reply")
	// ErrUnsolicited means that a master sent a push message or a reply that the proxy did not
	// request.
	ErrUnsolicited = errors.New("it sent a report that the proxy did not ask for")
)

// Connection wraps one connection to a master. One goroutine reads from it, and another goroutine
// writes.
type Connection struct {
	net.Conn
	// WriteSignal holds one signal while there is data to write.
	WriteSignal chan struct{}
	// EndSignal is closed by End.
	EndSignal chan struct{}
	// In reads from the master.
	In *resp.Reader

	once sync.Once
}

// NewConnection returns a Connection. limits apply to each message of the master.
func NewConnection(conn net.Conn, limits resp.Limits) *Connection {
	return &Connection{Conn: conn, WriteSignal: make(chan struct{}, 1), EndSignal: make(chan struct{}),
		In: resp.NewRESP3Reader(conn, limits)}
}

// End closes the connection and stops both goroutines.
func (l *Connection) End() {
	l.once.Do(func() {
		close(l.EndSignal)
		_ = l.Close()
	})
}

// SignalWriter signals that there is data to write.
func (l *Connection) SignalWriter() {
	select {
	case l.WriteSignal <- struct{}{}:
	default:
	}
}

// Greet switches a connection to RESP3 and sends a command, within a time limit. The reply to the
// command must be of the given kind. If the master refuses, Greet returns the master's error reply.
func Greet(conn net.Conn, in *resp.Reader, timeout time.Duration, kind resp.Kind, command ...string) error {
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := conn.Write(resp.AppendWords(resp.AppendWords(nil, "HELLO", "3"), command...)); err != nil {
		return err
	}
	for _, want := range []resp.Kind{resp.Map, kind} {
		reply, got, err := ReadNext(in)
		refusal, refused := reply.(resp.Error)
		switch {
		case err != nil:
			return err
		case refused:
			return refusal
		case got != want:
			return ErrUnexpectedReply
		}
	}
	_ = conn.SetDeadline(time.Time{})
	return nil
}

// ReadNext reads one reply or push message, and returns its kind.
func ReadNext(in *resp.Reader) (reply any, kind resp.Kind, err error) {
	in.Begin()
	first, err := in.Next()
	if err != nil {
		return nil, 0, err
	}
	reply, err = in.ReadValueFrom(first)
	return reply, first.Kind, err
}
