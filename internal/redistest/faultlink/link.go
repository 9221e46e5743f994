package faultlink

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"redlock-proxy/internal/redistest"
)

// errLinkClosed means that Close has closed the link, so that it cannot be used again.
var errLinkClosed = errors.New("link is closed")

// Link forwards TCP connections to a target. It can be cut and healed, and can refuse and reset
// connections, to make a running server unreachable. It buffers at most 64 KB per connection. The
// zero value is not usable; see New. Methods may be called concurrently.
type Link struct {
	addr     string
	blockers *blockers
	delay    atomic.Int64  // of replies, in nanoseconds
	done     chan struct{} // closed by Close
	tasks    sync.WaitGroup

	mu            sync.Mutex
	target        string       // of new connections
	acceptedCount int          // number of connections so far
	listener      net.Listener // nil while the link refuses connections
	conns         map[*linkConn]struct{}
	closed        bool
}

// New listens on a free port of 127.0.0.1 and forwards to target (host:port), which need not be
// reachable yet.
func New(target string) (*Link, error) {
	listener, err := redistest.ListenFree("127.0.0.1")
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	return serveLink(listener, target), nil
}

// NewAt returns a link like New, but listens at addr (host:port).
func NewAt(addr, target string) (*Link, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	return serveLink(listener, target), nil
}

func serveLink(listener net.Listener, target string) *Link {
	l := &Link{
		target:   target,
		addr:     listener.Addr().String(),
		blockers: &blockers{requests: newBlocker(), replies: newBlocker()},
		done:     make(chan struct{}),
		conns:    map[*linkConn]struct{}{},
	}
	l.serve(listener)
	return l
}

// Addr returns the host:port to use in place of the target's.
func (l *Link) Addr() string { return l.addr }

// blockers block the writes to the target, and the writes to the clients.
type blockers struct{ requests, replies *blocker }

func (b *blockers) unblock() {
	b.requests.unblock()
	b.replies.unblock()
}

// Cut makes the link a black hole. Connections stay open, but after Cut has returned, neither side
// receives a byte or the end of a connection. The kernel accepts new connections, which get no
// reply.
func (l *Link) Cut() error { return errors.Join(l.CutRequests(), l.CutReplies()) }

// CutRequests cuts the direction to the target. Replies still arrive.
func (l *Link) CutRequests() error {
	return l.cut(l.blockers.requests, (*linkConn).interruptRequests)
}

// CutReplies cuts the direction to the clients. Requests still arrive.
func (l *Link) CutReplies() error {
	return l.cut(l.blockers.replies, (*linkConn).interruptReplies)
}

// cut blocks the writes in one direction, and interrupts running writes.
func (l *Link) cut(writes *blocker, interrupt func(*linkConn)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.listen(); err != nil {
		return err
	}
	writes.block(func() {
		for c := range l.conns {
			interrupt(c)
		}
	})
	return nil
}

// Heal forwards everything again, as after a partition. Bytes that were sent during the cut arrive
// late, even if their sender has given up.
func (l *Link) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.listen(); err != nil {
		return err
	}
	for c := range l.conns {
		c.resume()
	}
	l.blockers.unblock()
	return nil
}

// Refuse resets all connections and refuses new ones until Heal or Cut.
func (l *Link) Refuse() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errLinkClosed
	}
	err := l.stopListening()
	l.resetAll()
	l.blockers.unblock()
	return err
}

// Reset resets the current connections. New ones succeed, unless the link is cut or refuses.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetAll()
}

// Close resets all connections, stops listening, and waits for the link's goroutines. It may be
// called again.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	err := l.stopListening()
	l.resetAll()
	l.mu.Unlock()
	l.tasks.Wait()
	return err
}

// listen opens the listener again if Refuse has closed it. The caller holds mu.
func (l *Link) listen() error {
	if l.closed {
		return errLinkClosed
	}
	if l.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", l.addr)
	if err != nil {
		return fmt.Errorf("link to %s: %w", l.target, err)
	}
	l.serve(listener)
	return nil
}

// stopListening closes the listener, if there is one. The caller holds mu.
func (l *Link) stopListening() error {
	if l.listener == nil {
		return nil
	}
	err := l.listener.Close()
	l.listener = nil
	return err
}

// resetAll resets every connection. The caller holds mu.
func (l *Link) resetAll() {
	for c := range l.conns {
		c.reset()
	}
}

// serve accepts connections in the background. The caller holds mu, except in a constructor.
func (l *Link) serve(listener net.Listener) {
	l.listener = listener
	l.tasks.Go(func() { l.accept(listener) })
}

// accept accepts connections while requests are not blocked. While requests are blocked, new
// connections stay in the kernel's queue, which is limited.
func (l *Link) accept(listener net.Listener) {
	for l.blockers.requests.waitUnblocked(l.done) {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		l.tasks.Go(func() { l.forward(newLinkConn(conn.(*net.TCPConn), l.blockers, &l.delay)) })
	}
}

// forward runs one connection to its end.
func (l *Link) forward(c *linkConn) {
	target, ok := l.add(c)
	if !ok {
		c.reset()
		return
	}
	defer l.remove(c)
	c.run(target)
}

// add adds a connection and returns its target. It returns false if the link refuses connections or
// is closed.
func (l *Link) add(c *linkConn) (target string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil { // refused or closed after the accept
		return "", false
	}
	l.conns[c] = struct{}{}
	l.acceptedCount++
	return l.target, true
}

func (l *Link) remove(c *linkConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
