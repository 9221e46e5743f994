package upstream

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/resp"
)

const (
	// ownTimeout bounds what the proxy asks for itself, dialling included: a client waits for it.
	ownTimeout = 2 * time.Second
	// ownConns is how many connections there are at most for it.
	ownConns = 4
)

// pool asks the upstream what is no client's own question, on connections that no client
// shares. It does nothing there for a client: these connections have other rights.
type pool struct {
	options     redis.Options
	connections connections

	mu     sync.Mutex
	redis  *redis.Client // nil: not made yet
	closed bool
}

// newPool takes the options of the upstream.
func newPool(u *Upstream) *pool {
	p, opts := &pool{}, *u.options.Load()
	opts.DB = 0
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	if opts.Password != "" { // which may change
		opts.CredentialsProvider = func() (username, password string) {
			is := u.options.Load()
			return is.Username, is.Password
		}
	}
	opts.DialTimeout = ownTimeout
	opts.ReadTimeout, opts.WriteTimeout = ownTimeout, ownTimeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = ownConns
	opts.PipelinePoolSize = -1
	opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, min(u.Timeout(), ownTimeout))
		defer cancel()
		conn, err := u.dialNow(ctx)
		if err != nil {
			return nil, err
		}
		return p.connections.add(resp.Bound(conn, resp.Client())), nil // go-redis believes the lengths that it is told
	}
	p.options = opts
	return p
}

// Close closes the connections of the proxy's own, those to Sentinels as well.
func (u *Upstream) Close() {
	u.own.close()
	if u.following != nil {
		u.following.close()
	}
}

func (p *pool) client() (*redis.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if p.redis == nil {
		p.redis = redis.NewClient(&p.options)
	}
	return p.redis, nil
}

// renew leaves the connections that there are: the upstream is another server now.
func (p *pool) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redis != nil {
		_ = p.redis.Close()
	}
	p.redis = nil
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redis != nil {
		_ = p.redis.Close()
	}
	p.redis, p.closed = nil, true
}
