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

// lockSettings makes go-redis never retry (a SET NX sent twice refuses itself), never wait longer
// than the timeout, whatever its caller does, greet with nothing that an old or locked-down server
// refuses, and read no more than an answer can be. secure is as for NewTransport.
func lockSettings(opts *redis.Options, timeout time.Duration, secure func(*tls.Config)) {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = timeout, timeout, timeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = poolSize
	opts.PipelinePoolSize = -1
	dial := resettingDialer(opts, secure)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return resp.Bound(conn, resp.Client()), nil
	}
}

// poolSize is for what is no batch: the prober, and catch-ups of other masters.
const poolSize = 7

// resettingDialer dials as go-redis would, and has a close discard what was not
// delivered: after a timeout nothing may reach the master late, after its undo.
func resettingDialer(opts *redis.Options, secure func(*tls.Config)) func(context.Context, string, string) (net.Conn, error) {
	dial := redis.NewDialer(opts)
	if opts.TLSConfig != nil && secure != nil {
		dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			now := *opts
			now.TLSConfig = opts.TLSConfig.Clone()
			secure(now.TLSConfig)
			return redis.NewDialer(&now)(ctx, network, addr)
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

// socketOf is what a TLS connection goes over, or the connection itself.
func socketOf(conn net.Conn) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return t.NetConn()
	}
	return conn
}

// lentConn is a connection that go-redis has for a while: it stays open when that is done
// with it.
type lentConn struct{ net.Conn }

// Close is of net.Conn.
func (lentConn) Close() error { return nil }

// borrowed is the connection that go-redis dials for a link. It dials in a goroutine of its own,
// which may go on when the time to dial is over.
type borrowed struct {
	mu   sync.Mutex
	conn net.Conn // the last one; nil: none yet
	over bool     // none is wanted any more
}

// keep takes a connection that was dialled, unless that comes too late.
func (b *borrowed) keep(conn net.Conn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		_ = socketOf(conn).Close()
		return net.ErrClosed
	}
	if b.conn != nil {
		_ = socketOf(b.conn).Close()
	}
	b.conn = conn
	return nil
}

// end gives the connection back, if there is one. What is dialled later is closed.
func (b *borrowed) end() net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	return b.conn
}

// Dial makes a link to a database. From then on the connection is ours.
func (t *redisTransport) Dial(ctx context.Context, db int) (Link, error) {
	conn, life, err := t.connect(ctx, db)
	if err != nil {
		return nil, err
	}
	k := newRedisLink(t, conn)
	if !t.keep(k, life, k.Close) {
		k.Close()
		return nil, errOtherServer
	}
	return k, nil
}

// connect makes a connection to a database: go-redis dials, logs in, selects the database, and
// finds out whether it is the server that it should be. It returns as of which life that is.
func (t *redisTransport) connect(ctx context.Context, db int) (net.Conn, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, t.waiting.time())
	defer cancel()
	life := t.lifeNow()
	var dialled borrowed
	opts := t.options
	opts.DB, opts.PoolSize = db, 1
	dial := resettingDialer(&opts, t.secure)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if err := dialled.keep(conn); err != nil {
			return nil, err
		}
		return resp.Bound(lentConn{conn}, resp.Client()), nil
	}
	client := redis.NewClient(&opts)
	err := client.Ping(ctx).Err()
	_ = client.Close()
	mine := dialled.end()
	if err == nil {
		err = mine.SetDeadline(time.Time{})
	}
	if err != nil {
		if mine != nil {
			_ = socketOf(mine).Close()
		}
		return nil, 0, plainRefusal(err)
	}
	return mine, life, nil
}

// plainRefusal is the error reply of a server that lets no connection in, or the error as it is.
func plainRefusal(err error) error {
	var said redis.Error
	if errors.As(err, &said) {
		return resp.Error(said.Error())
	}
	return err
}
