package faultlink

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"redlock-proxy/internal/redistest"
)

// errLinkClosed is returned when a closed link is asked to do something.
var errLinkClosed = errors.New("link is closed")

// Link forwards TCP connections to a target and can be cut, healed, refused and reset, to make a
// living server unreachable. It holds at most 64 KB per connection. The zero value is not usable;
// see New. Methods may be called concurrently.
type Link struct {
	addr  string
	gate  *gate
	delay atomic.Int64  // of answers, in nanoseconds
	done  chan struct{} // closed by Close
	tasks sync.WaitGroup

	mu       sync.Mutex
	target   string       // of connections from now on
	taken    int          // connections so far
	listener net.Listener // nil while connections are refused
	circuits map[*circuit]struct{}
	closed   bool
}

// New listens on a free port of 127.0.0.1 and forwards to target (host:port), which need not be
// reachable yet.
func New(target string) (*Link, error) {
	listener, err := redistest.ListenFree("127.0.0.1")
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	return on(listener, target), nil
}

// At is New that listens at an address (host:port) which is free.
func At(addr, target string) (*Link, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	return on(listener, target), nil
}

func on(listener net.Listener, target string) *Link {
	l := &Link{
		target:   target,
		addr:     listener.Addr().String(),
		gate:     newGate(),
		done:     make(chan struct{}),
		circuits: map[*circuit]struct{}{},
	}
	l.serve(listener)
	return l
}

// Addr returns the host:port to use in place of the target's.
func (l *Link) Addr() string { return l.addr }

// Cut makes the link a black hole: connections stand, but when Cut has returned no byte and no end
// of a connection arrives on either side; new connections are accepted by the kernel and nothing
// answers them.
func (l *Link) Cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.listen(); err != nil {
		return err
	}
	l.gate.shut(func() {
		for c := range l.circuits {
			c.interrupt()
		}
	})
	return nil
}

// Heal lets everything flow again, as after a partition: what was sent meanwhile arrives late, also
// what its sender gave up.
func (l *Link) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.listen(); err != nil {
		return err
	}
	for c := range l.circuits {
		c.resume()
	}
	l.gate.open()
	return nil
}

// Refuse resets all connections and refuses new ones until Heal or Cut.
func (l *Link) Refuse() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errLinkClosed
	}
	err := l.hangUp()
	l.resetAll()
	l.gate.open()
	return err
}

// Reset resets the connections of this moment; new ones succeed, unless the link is cut or refuses.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resetAll()
}

// Close resets everything and waits for the link's goroutines. It may be called again.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	err := l.hangUp()
	l.resetAll()
	l.mu.Unlock()
	l.tasks.Wait()
	return err
}

// listen takes up listening again after Refuse. The caller holds mu.
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

// hangUp stops listening. The caller holds mu.
func (l *Link) hangUp() error {
	if l.listener == nil {
		return nil
	}
	err := l.listener.Close()
	l.listener = nil
	return err
}

// resetAll resets every connection. The caller holds mu.
func (l *Link) resetAll() {
	for c := range l.circuits {
		c.reset()
	}
}

// serve accepts in the background. The caller holds mu, or nobody else knows the link yet.
func (l *Link) serve(listener net.Listener) {
	l.listener = listener
	l.tasks.Go(func() { l.accept(listener) })
}

// accept takes connections while the gate is open; a shut gate leaves them in the kernel's queue,
// which is bounded.
func (l *Link) accept(listener net.Listener) {
	for l.gate.wait(l.done) {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		l.tasks.Go(func() { l.forward(newCircuit(conn.(*net.TCPConn), l.gate, &l.delay)) })
	}
}

// forward runs one connection to its end.
func (l *Link) forward(c *circuit) {
	target, ok := l.add(c)
	if !ok {
		c.reset()
		return
	}
	defer l.remove(c)
	c.run(target)
}

// add takes a connection in, and says where it leads.
func (l *Link) add(c *circuit) (target string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener == nil { // refused or closed after the accept
		return "", false
	}
	l.circuits[c] = struct{}{}
	l.taken++
	return l.target, true
}

func (l *Link) remove(c *circuit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.circuits, c)
}
