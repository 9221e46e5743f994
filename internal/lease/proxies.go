package lease

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Proxies are those through which a lock is held. One of them is asked at a time; after it did not
// answer, the next one is. They are for one goroutine at a time.
type Proxies struct {
	clients []*redis.Client
	// at is the number of the one that is asked next, last of the one that was asked last.
	at, last int
}

// NewProxies returns proxies that are asked in this order, by clients that have the Settings.
func NewProxies(clients ...*redis.Client) *Proxies { return &Proxies{clients: clients} }

// Last returns the number of the proxy that was asked last.
func (p *Proxies) Last() int { return p.last }

// Close ends the connections to all of them. It may be called while one is asked.
func (p *Proxies) Close() {
	for _, client := range p.clients {
		_ = client.Close()
	}
}

// do asks a proxy.
func (p *Proxies) do(ctx context.Context, words ...any) *redis.Cmd {
	p.last = p.at
	cmd := p.clients[p.at].Do(ctx, words...)
	if isUnanswered(cmd.Err()) {
		p.at = (p.at + 1) % len(p.clients)
	}
	return cmd
}

// isUnanswered reports whether an error is not a proxy's reply: then the command may have been
// carried out, or not.
func isUnanswered(err error) bool {
	return err != nil && !errors.As(err, new(redis.Error))
}
