package sharing

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
)

// Client is who is brought replies. Its methods are called by any goroutine, one at a time for one connection, and none of them but Catch waits
// for the client.
type Client interface {
	// Take brings the client bytes with which so many replies end; inside: a reply goes on after them. It gives how many bytes
	// the client has not taken yet, of these and others.
	Take(p []byte, ended int, inside bool) (held int)
	// Large is told that a reply is large, or that much waits for the client: from then on it should have a connection of its own.
	Large()
	// Catch waits until the client has taken most of what waits for it, or is gone, or must have all of it come.
	Catch()
	// Lost is told that so many replies will not come, and why; inside: of the first of them the beginning was brought.
	Lost(replies int, inside bool, cause error)
}

// Upstream makes connections.
type Upstream interface {
	// ConnectAs makes one that is ready for the commands of clients that speak this protocol and use this database.
	ConnectAs(ctx context.Context, proto, db int) (net.Conn, error)
	// Term counts its failovers.
	Term() uint64
}

// Pool are the connections that are shared, by group.
type Pool struct {
	size     int
	base     Group
	upstream Upstream
	turned   func(what string)
	endless  int // the bound of that name, but in tests
	log      *slog.Logger

	mu     sync.Mutex
	groups map[Group]*group
	conns  map[*conn]struct{}
	closed bool

	running sync.WaitGroup // readers, and who writes; added to with mu held, or by one of them
}

// place is one of the connections that may be shared at a time.
type place struct {
	conn *conn         // nil: there is none
	made chan struct{} // closed when one is made or cannot be; nil: none is being made
	err  error         // why it could not be made
}

// New makes a pool of so many connections for each group, at least one, each of which is made when it is needed. In the base are those who have not said
// anything of protocols and databases. Where turned is not nil, replies that lead elsewhere are turned (package detour), and it is called for each.
func New(size int, base Group, up Upstream, turned func(what string), log *slog.Logger) *Pool {
	p := &Pool{size: size, base: base, upstream: up, turned: turned, endless: endless, log: log, groups: map[Group]*group{}, conns: map[*conn]struct{}{}}
	p.add(base)
	return p
}

// Len is how many connections there are, with those that only finish what they have begun.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Addresses are this end's of the connections.
func (p *Pool) Addresses() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		all = append(all, c.wire.LocalAddr())
	}
	return all
}

var (
	// errClosed says that the pool was closed.
	errClosed = errors.New("the proxy shuts down")
	// errOlder says that the upstream failed over while a connection was made.
	errOlder = errors.New("it was connected to before a failover")
)

// connect gives the connection of a place, which is made if need be, once for all who wait for it.
func (p *Pool) connect(ctx context.Context, in *group, here *place) (*conn, error) {
	for {
		p.mu.Lock()
		switch {
		case p.closed:
			p.mu.Unlock()
			return nil, errClosed
		case here.conn != nil && here.conn.isOpen():
			defer p.mu.Unlock()
			return here.conn, nil
		case here.made == nil:
			here.conn, here.made = nil, make(chan struct{})
			p.mu.Unlock()
			return p.make(ctx, in, here)
		}
		made := here.made
		p.mu.Unlock()
		select {
		case <-made:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := p.failure(here); err != nil {
			return nil, err
		}
	}
}

// failure is why what was waited for could not be made.
func (p *Pool) failure(here *place) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if here.made == nil && here.conn == nil {
		return here.err
	}
	return nil
}

// make makes the connection of a place.
func (p *Pool) make(ctx context.Context, in *group, here *place) (*conn, error) {
	term := p.upstream.Term()
	raw, err := p.upstream.ConnectAs(ctx, in.Proto, in.DB)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(here.made)
	here.made, here.err = nil, nil
	switch {
	case err != nil && ctx.Err() == nil:
		here.err = err // else who waits tries for itself
		return nil, err
	case err != nil:
		return nil, err
	case p.closed:
		_ = raw.Close()
		return nil, errClosed
	}
	c := newConn(p, in.Group, raw, term)
	p.conns[c] = struct{}{}
	here.conn = c
	p.running.Go(c.read)
	if now := p.upstream.Term(); now != term {
		c.leave(now, errOlder)
	}
	return c, nil
}

// forget is told that a connection has ended.
func (p *Pool) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	if g := p.groups[c.group]; g != nil {
		for i := range g.places {
			if g.places[i].conn == c {
				g.places[i].conn = nil
			}
		}
	}
}

// Leave ends the connections that were made before the upstream failed over, which is told as the cause.
func (p *Pool) Leave(cause error) {
	term := p.upstream.Term()
	for _, c := range p.all() {
		c.leave(term, cause)
	}
}

func (p *Pool) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.conns))
}

// Cut ends all connections, and none is made any more. What is owed is lost.
func (p *Pool) Cut() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, c := range p.all() {
		_ = c.wire.Close()
	}
}

// Close is Cut that waits for the goroutines. No client may be waited for any more.
func (p *Pool) Close() {
	p.Cut()
	p.running.Wait()
}
