package lease

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"redlock-proxy/internal/resp"
)

// Proxy describes how to connect and log in to a proxy.
type Proxy struct {
	// Network and Addr are as for net.Dial.
	Network, Addr string
	// TLS is nil for a connection without TLS.
	TLS *tls.Config
	// Username may be empty if there is a Password.
	Username, Password string
	ClientName         string
	DB                 int
}

// errUnexpectedReply means that a proxy violates the protocol.
var errUnexpectedReply = errors.New("unexpected reply; check that the server is a redlock-proxy")

// connection is a RESP3 connection to a proxy. It is not safe for concurrent use.
type connection struct {
	net.Conn
	in *resp.Reader
}

// limits returns the limits for one message of a proxy.
func limits() resp.Limits {
	return resp.Limits{Line: 16 << 10, Bulk: 1 << 20, Elements: 1 << 12, Depth: 8, Total: 1 << 20}
}

// connect connects and logs in.
func (p Proxy) connect(ctx context.Context) (*connection, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	} = new(net.Dialer)
	if p.TLS != nil {
		dialer = &tls.Dialer{Config: p.TLS}
	}
	conn, err := dialer.DialContext(ctx, p.Network, p.Addr)
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, in: resp.NewRESP3Reader(conn, limits())}
	for _, command := range p.loginCommands() {
		if _, err := c.do(ctx, command...); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	return c, nil
}

// loginCommands returns the commands with which a connection begins.
func (p Proxy) loginCommands() [][]any {
	hello := []any{"HELLO", 3}
	if p.Password != "" {
		username := p.Username
		if username == "" {
			username = "default"
		}
		hello = append(hello, "AUTH", username, p.Password)
	}
	if p.ClientName != "" {
		hello = append(hello, "SETNAME", p.ClientName)
	}
	if p.DB == 0 {
		return [][]any{hello}
	}
	return [][]any{hello, {"SELECT", p.DB}}
}

// do sends a command and returns its reply. An error reply is a resp.Error. After any other error,
// the connection cannot be used. Pushes before the reply are discarded, because the reply is newer.
func (c *connection) do(ctx context.Context, words ...any) (reply any, err error) {
	err = c.interruptible(ctx, func() error {
		if _, err := c.Write(resp.AppendCommand(nil, words...)); err != nil {
			return err
		}
		for kind := resp.Push; kind == resp.Push; {
			if reply, kind, err = c.readMessage(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if refusal, refused := reply.(resp.Error); refused {
		return nil, refusal
	}
	return reply, nil
}

// awaitPush returns the next push, or nil if ctx ends first. After an error, the connection cannot
// be used.
func (c *connection) awaitPush(ctx context.Context) ([]any, error) {
	if err := c.interruptible(ctx, c.in.Wait); err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	// The rest of the push must follow at once, even if ctx ends meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
	defer cancel()
	var push []any
	err := c.interruptible(ctx, func() error {
		message, kind, err := c.readMessage()
		if err != nil {
			return err
		}
		if kind != resp.Push {
			return errUnexpectedReply
		}
		push, _ = message.([]any)
		return nil
	})
	return push, err
}

// readMessage reads one reply or push, and returns its kind.
func (c *connection) readMessage() (message any, kind resp.Kind, err error) {
	c.in.Begin()
	first, err := c.in.Next()
	if err != nil {
		return nil, 0, err
	}
	message, err = c.in.ReadValueFrom(first)
	return message, first.Kind, err
}

// interruptible calls f, and ends its reads and writes when ctx ends.
func (c *connection) interruptible(ctx context.Context, f func() error) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.SetDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	err := f()
	if !stop() {
		<-interrupted
		_ = c.SetDeadline(time.Time{})
	}
	return err
}
