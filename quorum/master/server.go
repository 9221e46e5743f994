package master

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/internal/scheme"
)

// ServerClient sends commands to a Redis that is not a master, such as the upstream.
type ServerClient struct {
	client  *redis.Client
	timeout time.Duration
}

// NewServerClient returns a client for the URL of a Redis. It ignores a database number in the URL.
// The timeout also limits each read and write.
func NewServerClient(url string, access Access) (*ServerClient, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	applyOptions(opts, access.Timeout, access.TLS)
	opts.DB = 0
	return &ServerClient{redis.NewClient(opts), access.Timeout}, nil
}

// Do executes one command. A nil reply is not an error.
func (s *ServerClient) Do(ctx context.Context, words ...any) (any, error) {
	return resultOf(s.client.Do(ctx, words...))
}

// HasLogin reports whether the URL contains a user name or a password.
func (s *ServerClient) HasLogin() bool {
	return s.client.Options().Username+s.client.Options().Password != ""
}

// Advice returns the text of a remedy if the scheme of the URL is wrong, or "". err is the error of
// a server that cannot be reached.
func (s *ServerClient) Advice(ctx context.Context, err error) string {
	return adviceFor(ctx, s.client.Options(), s.timeout, err)
}

func adviceFor(ctx context.Context, opts *redis.Options, timeout time.Duration, err error) string {
	return scheme.Advice(ctx, scheme.Server{Network: opts.Network, Addr: opts.Addr, TLS: opts.TLSConfig != nil},
		timeout, err)
}

// Close closes all connections.
func (s *ServerClient) Close() { _ = s.client.Close() }
