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
	// internalCommandTimeout limits each internal command of the pool, including dialing, because a
	// client waits for it.
	internalCommandTimeout = 2 * time.Second
	// maxOwnConns limits the number of connections for the internal commands of the pool.
	maxOwnConns = 4
)

// pool sends internal commands to the upstream, on connections that no client shares. It runs no
// commands of clients, because these connections have different permissions.
type pool struct {
	options     redis.Options
	connections connections

	mu          sync.Mutex
	redisClient *redis.Client // nil until the next call of client
	closed      bool
}

// newPool returns a pool with the options of the upstream, except the database.
func newPool(u *Upstream) *pool {
	p, opts := &pool{}, *u.options.Load()
	opts.DB = 0
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	if opts.Password != "" { // the password may change
		opts.CredentialsProvider = func() (username, password string) {
			opts := u.options.Load()
			return opts.Username, opts.Password
		}
	}
	opts.DialTimeout = internalCommandTimeout
	opts.ReadTimeout, opts.WriteTimeout = internalCommandTimeout, internalCommandTimeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = maxOwnConns
	opts.PipelinePoolSize = -1
	opts.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, min(u.Timeout(), internalCommandTimeout))
		defer cancel()
		conn, err := u.dialNow(ctx)
		if err != nil {
			return nil, err
		}
		// The connection needs limits, because go-redis trusts the lengths that it reads.
		return p.connections.add(resp.Limit(conn, resp.ClientLimits())), nil
	}
	p.options = opts
	return p
}

// Close closes the proxy's own connections, and the connections to Sentinels.
func (u *Upstream) Close() {
	u.pool.close()
	if u.discovery != nil {
		u.discovery.close()
	}
}

func (p *pool) client() (*redis.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if p.redisClient == nil {
		p.redisClient = redis.NewClient(&p.options)
	}
	return p.redisClient, nil
}

// renew closes the connections, because the upstream is another server now.
func (p *pool) renew() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redisClient != nil {
		_ = p.redisClient.Close()
	}
	p.redisClient = nil
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.redisClient != nil {
		_ = p.redisClient.Close()
	}
	p.redisClient, p.closed = nil, true
}
