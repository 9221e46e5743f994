package master

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/resp"
)

// applyOptions configures go-redis for locks. go-redis never retries, because the master would
// refuse the second copy of a SET NX. It never waits longer than the timeout. Its handshake works
// with old and restricted servers, and its reads are limited. configureTLS has the same meaning as
// Access.TLS.
func applyOptions(opts *redis.Options, timeout time.Duration, configureTLS func(*tls.Config)) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = timeout, timeout, timeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = poolSize
	opts.PipelinePoolSize = -1
	dial := resettingDialer(opts, configureTLS)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return resp.Limit(conn, resp.ClientLimits()), nil
	}
}

// poolSize is the number of connections outside of batches: for the prober, and for catch-ups of
// other masters.
const poolSize = 7

// resettingDialer returns a dialer like the one of go-redis, but its connections discard
// undelivered data when they are closed. So a command that timed out rarely reaches the master
// after its undo. No part of the protocol relies on that.
func resettingDialer(
	opts *redis.Options, configureTLS func(*tls.Config),
) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(opts)
	if opts.TLSConfig != nil && configureTLS != nil {
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			current := *opts
			current.TLSConfig = opts.TLSConfig.Clone()
			configureTLS(current.TLSConfig)
			return redis.NewDialer(&current)(ctx, network, addr)
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if t, ok := socketOf(conn).(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		return conn, nil
	}
}

// socketOf returns the connection below a TLS connection, or else the connection itself.
func socketOf(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return conn
}

// keepOpenConn keeps a connection open when go-redis closes it.
type keepOpenConn struct{ net.Conn }

// Close implements net.Conn. It does nothing.
func (keepOpenConn) Close() error { return nil }

// dialledConn holds the connection that go-redis dials for a link. go-redis dials in a separate
// goroutine, which may continue after the time limit.
type dialledConn struct {
	mu     sync.Mutex
	conn   net.Conn // the last connection, or nil
	closed bool     // set by take; keep closes later connections at once
}

// keep stores a dialled connection, or closes it if take has been called.
func (b *dialledConn) keep(conn net.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = socketOf(conn).Close()
		return net.ErrClosed
	}
	if b.conn != nil {
		_ = socketOf(b.conn).Close()
	}
	b.conn = conn
	return nil
}

// take returns the connection, or nil. From then on keep closes the connections that go-redis
// dials.
func (b *dialledConn) take() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.conn
}

// Dial opens a link to a database. The link owns the connection.
func (t *redisTransport) Dial(ctx context.Context, db int) (Link, error) {
	conn, serverNumber, err := t.connect(ctx, db)
	if err != nil {
		return nil, err
	}
	k := newRedisLink(t, conn)
	if !t.addLink(k, serverNumber, k.Close) {
		k.Close()
		return nil, errDifferentServer
	}
	return k, nil
}

// connect opens a connection to a database. go-redis dials, logs in, selects the database, and
// checks that it reached the expected server. connect also returns the number of that server.
func (t *redisTransport) connect(ctx context.Context, db int) (net.Conn, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeouts.current())
	defer cancel()
	serverNumber := t.currentServer()
	var dialled dialledConn
	opts := t.options
	opts.DB, opts.PoolSize = db, 1
	dial := resettingDialer(&opts, t.configureTLS)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := dialled.keep(conn); err != nil {
			return nil, err
		}
		return resp.Limit(keepOpenConn{conn}, resp.ClientLimits()), nil
	}
	client := redis.NewClient(&opts)
	err := client.Ping(ctx).Err()
	_ = client.Close()
	conn := dialled.take()
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		if conn != nil {
			_ = socketOf(conn).Close()
		}
		return nil, 0, plainError(err)
	}
	return conn, serverNumber, nil
}

// plainError returns the error reply of a server that refuses the connection as a resp.Error, and
// other errors unchanged.
func plainError(err error) error {
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return resp.Error(refusal.Error())
	}
	return err
}
