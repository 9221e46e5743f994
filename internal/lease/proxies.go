package lease

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Proxies sends the commands for a lock to one proxy until that proxy does not answer, then to the
// next proxy. It is not safe for concurrent use, except for Close.
type Proxies struct {
	clients []*redis.Client
	// nextIndex is the index of the proxy that gets the next command. lastIndex is the index of the
	// proxy that got the last command.
	nextIndex, lastIndex int
}

// NewProxies returns proxies that get commands in the order of clients. The options of each client
// must come from ConfigureClient.
func NewProxies(clients ...*redis.Client) *Proxies { return &Proxies{clients: clients} }

// LastIndex returns the index of the proxy that got the last command.
func (p *Proxies) LastIndex() int { return p.lastIndex }

// Close ends the connections to all proxies. It may be called while a command is running.
func (p *Proxies) Close() {
	for _, client := range p.clients {
		_ = client.Close()
	}
}

// do sends a command to the current proxy.
func (p *Proxies) do(ctx context.Context, words ...any) *redis.Cmd {
	p.lastIndex = p.nextIndex
	cmd := p.clients[p.nextIndex].Do(ctx, words...)
	if isConnError(cmd.Err()) {
		p.nextIndex = (p.nextIndex + 1) % len(p.clients)
	}
	return cmd
}

// isConnError reports whether an error comes from the connection and not from a reply. After such
// an error, the proxy may or may not have executed the command.
func isConnError(err error) bool {
	return err != nil && !errors.As(err, new(redis.Error))
}
