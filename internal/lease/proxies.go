package lease

import (
	"context"
	"errors"

	"redlock-proxy/internal/resp"
)

// errNoAnswer means that a proxy did not answer in time.
var errNoAnswer = errors.New("no answer in time")

// Proxies sends the commands for a lock to one proxy until a command fails, then to the next proxy.
// It is not safe for concurrent use.
type Proxies struct {
	list []Proxy
	// index is the index of the proxy that gets the next command. lastIndex is the index of the
	// proxy that got the last command.
	index, lastIndex int
	// conn is the connection to the proxy that gets the next command, or nil.
	conn *connection
}

// NewProxies returns proxies that get commands in the order of list.
func NewProxies(list ...Proxy) *Proxies { return &Proxies{list: list} }

// LastIndex returns the index of the proxy that got the last command.
func (p *Proxies) LastIndex() int { return p.lastIndex }

// Close closes the connection.
func (p *Proxies) Close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

// next closes the connection. The next command goes to the next proxy.
func (p *Proxies) next() {
	p.Close()
	p.index = (p.index + 1) % len(p.list)
}

// do sends a command to the current proxy, and returns its reply. After an error of the connection,
// the next command goes to the next proxy.
func (p *Proxies) do(ctx context.Context, words ...any) (reply any, err error) {
	p.lastIndex = p.index
	if p.conn == nil {
		p.conn, err = p.list[p.index].connect(ctx)
	}
	if err == nil {
		reply, err = p.conn.do(ctx, words...)
	}
	if isConnError(err) {
		p.next()
		if ctx.Err() != nil {
			err = errNoAnswer
		}
	}
	return reply, err
}

// awaitPush returns the next push, or nil if ctx ends first. Without a connection, it waits until
// ctx ends. After an error, the next command goes to the next proxy.
func (p *Proxies) awaitPush(ctx context.Context) ([]any, error) {
	if p.conn == nil {
		<-ctx.Done()
		return nil, nil
	}
	push, err := p.conn.awaitPush(ctx)
	if err != nil {
		p.next()
	}
	return push, err
}

// isConnError reports whether an error comes from the connection and not from a reply. After such
// an error, the proxy may or may not have executed the command.
func isConnError(err error) bool {
	return err != nil && !errors.As(err, new(resp.Error))
}
