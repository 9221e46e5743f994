package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// asideTimeout bounds what is done aside, dialling included: a client waits for it.
	asideTimeout = 2 * time.Second
	// asideConns is how many connections there are at most for it, for each database.
	asideConns = 4
)

// aside does at the upstream what is no client's own command, on connections that no
// client shares.
type aside struct {
	options redis.Options

	mu      sync.Mutex
	clients map[int]*redis.Client // by database; nil when closed
}

// newAside takes the options of the upstream. go-redis must not try twice: a message
// would be published twice.
func newAside(opts redis.Options, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *aside {
	opts.Protocol = 2
	opts.DisableIdentity = true
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.DialTimeout = min(opts.DialTimeout, asideTimeout)
	opts.ReadTimeout, opts.WriteTimeout = asideTimeout, asideTimeout
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = asideConns
	opts.PipelinePoolSize = -1
	opts.Dialer = dial
	return &aside{options: opts, clients: map[int]*redis.Client{}}
}

// Carry has the upstream carry out commands in a database, in one transaction. It
// returns when the upstream has answered, or after 2 seconds, with the first thing
// that went wrong; then it may not be known whether they were carried out. They are
// never sent twice.
func (u *Upstream) Carry(ctx context.Context, db int, commands [][]string) error {
	ctx, cancel := context.WithTimeout(ctx, asideTimeout)
	defer cancel()
	client, err := u.aside.client(db)
	if err != nil {
		return &upstreamError{u.name, err}
	}
	answers, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, words := range commands {
			p.Do(ctx, anyOf(words)...)
		}
		return nil
	})
	for _, answer := range answers { // a null is an error to go-redis
		if err == nil || errors.Is(err, redis.Nil) {
			err = answer.Err()
		}
	}
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	return &upstreamError{u.name, plainCause(err)}
}

// Close closes the connections of the proxy's own.
func (u *Upstream) Close() { u.aside.close() }

func anyOf(words []string) []any {
	all := make([]any, len(words))
	for i, w := range words {
		all[i] = w
	}
	return all
}

// client has the database in its connections' greeting, so that no command can run in
// a wrong one.
func (a *aside) client(db int) (*redis.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clients == nil {
		return nil, net.ErrClosed
	}
	if a.clients[db] == nil {
		opts := a.options
		opts.DB = db
		a.clients[db] = redis.NewClient(&opts)
	}
	return a.clients[db], nil
}

func (a *aside) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.clients {
		_ = c.Close()
	}
	a.clients = nil
}
