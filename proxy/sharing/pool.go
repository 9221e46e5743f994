package sharing

import (
	"context"
	"errors"
	"log/slog"
	"net"
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
	// Connect makes one that is ready for a client's commands.
	Connect(ctx context.Context) (net.Conn, error)
	// Term counts its failovers.
	Term() uint64
}

// Pool are the connections that are shared.
type Pool struct {
	upstream Upstream
	log      *slog.Logger

	mu     sync.Mutex
	places []place
	next   int // place for the next lane
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

// New makes a pool of so many connections, at least one, each of which is made when it is needed.
func New(size int, up Upstream, log *slog.Logger) *Pool {
	return &Pool{upstream: up, log: log, places: make([]place, size), conns: map[*conn]struct{}{}}
}

// Len is how many connections there are, with those that only finish what they have begun.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// Lane makes the way of a client. It needs not be closed.
func (p *Pool) Lane(c Client) *Lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = (p.next + 1) % len(p.places)
	return &Lane{pool: p, client: c, place: p.next}
}

// Lane is the way of one client over connections that are shared, one at a time. It belongs to one goroutine.
type Lane struct {
	pool   *Pool
	client Client
	place  int
	conn   *conn
}

// Send sends whole commands for so many replies, after all that was sent before on the same connection. It reports false where they were not sent, and
// will not be: then the lane must be opened, but not before all replies have come or are lost. It waits as long as the upstream does
// not take what is to be written.
func (l *Lane) Send(commands []byte, replies int) bool {
	return l.conn != nil && l.conn.send(l, commands, replies)
}

// Only reports whether the connection takes commands of no other client any more, so that none is in the way of another.
func (l *Lane) Only() bool { return l.conn != nil && l.conn.isOnly(l) }

// Open has the lane have a connection that takes commands. Nothing may be owed to it. The error is that of the upstream's, or of the context's.
func (l *Lane) Open(ctx context.Context) (err error) {
	l.conn = nil
	l.conn, err = l.pool.connect(ctx, l.place)
	return err
}

var (
	// errClosed says that the pool was closed.
	errClosed = errors.New("the proxy shuts down")
	// errOlder says that the upstream failed over while a connection was made.
	errOlder = errors.New("it was connected to before a failover")
)

// connect gives the connection of a place, which is made if need be, once for all who wait for it.
func (p *Pool) connect(ctx context.Context, at int) (*conn, error) {
	for {
		p.mu.Lock()
		here := &p.places[at]
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
			return p.make(ctx, at)
		}
		made := here.made
		p.mu.Unlock()
		select {
		case <-made:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := p.failure(at, made); err != nil {
			return nil, err
		}
	}
}

// failure is why what was waited for could not be made.
func (p *Pool) failure(at int, waited chan struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if here := &p.places[at]; here.made == nil && here.conn == nil {
		return here.err
	}
	return nil
}

// make makes the connection of a place.
func (p *Pool) make(ctx context.Context, at int) (*conn, error) {
	term := p.upstream.Term()
	raw, err := p.upstream.Connect(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	here := &p.places[at]
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
	c := newConn(p, raw, term)
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
	for i := range p.places {
		if p.places[i].conn == c {
			p.places[i].conn = nil
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

func (p *Pool) all() (all []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		all = append(all, c)
	}
	return all
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
